import type { Environment } from "#gen/service/v1/environment_pb.js";
import { suitsInitializer } from "../../domain/project/prebuild.ts";
import { findReadyPrebuild } from "../../store/project/prebuild.ts";
import type { Reader, Scope } from "../../store/store.ts";

/** Id of the workspace that an environment on a runner starts from; empty when it starts from its initializer. */
export async function prebuildFor(
  db: Reader,
  scope: Scope,
  { metadata, spec }: Environment,
): Promise<string> {
  const projectId = metadata?.projectId;
  const environmentClassId = spec?.machine?.class;
  if (!projectId || !environmentClassId) return "";
  const ready = await findReadyPrebuild(db, scope, { projectId, environmentClassId });
  if (ready?.runnerId !== metadata.runnerId) return "";
  return suitsInitializer(ready, spec?.content?.initializer) ? ready.id : "";
}
