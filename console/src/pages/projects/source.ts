import type { Project } from "#gen/service/v1/project_pb.js";

/** Returns the first address of a project's sources. */
export function sourceOf({ initializer }: Project): string {
  const spec = initializer?.specs[0]?.spec;
  if (spec?.case === "git") return spec.value.remoteUri;
  return spec?.case === "contextUrl" ? spec.value.url : "";
}
