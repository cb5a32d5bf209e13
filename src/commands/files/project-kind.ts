import type { MessageShape } from "@bufbuild/protobuf";
import { ProjectPhase, ProjectSchema } from "#gen/service/v1/project_pb.js";
import { valueAt } from "./folder.ts";
import { type Change, define } from "./kind.ts";

/** Projects, in files. */
export const PROJECT = define<typeof ProjectSchema>({
  name: "Project",
  schema: ProjectSchema,
  fields: [
    "metadata.name",
    "metadata.annotations",
    "initializer",
    "devcontainerFilePath",
    "automationsFilePath",
    "technicalDescription",
    "prebuildConfiguration",
    "environmentClasses",
    "recommendedEditors",
  ],
  nameField: ["metadata", "name"],
  annotationsField: ["metadata", "annotations"],
  documentFields: {
    name: "metadata.name",
    annotations: "metadata.annotations",
    projectEnvironmentClasses: "environmentClasses",
  },
  create(project, { id, annotations }) {
    const { metadata, initializer, prebuildConfiguration, recommendedEditors, environmentClasses } = project;
    const { devcontainerFilePath, automationsFilePath, technicalDescription } = project;
    return [
      {
        case: "createProject",
        value: {
          ...{ name: metadata?.name ?? "", devcontainerFilePath, automationsFilePath, technicalDescription },
          ...(initializer && { initializer }),
          ...(prebuildConfiguration && { prebuildConfiguration }),
          annotations: { ...annotations },
        },
      },
      ...(recommendedEditors
        ? [{ case: "updateProject" as const, value: { projectId: id, recommendedEditors } }]
        : []),
      ...classesOf(id, environmentClasses),
    ];
  },
  update(project, { id, annotations, content }, current) {
    const { metadata, initializer, prebuildConfiguration, recommendedEditors, environmentClasses } = project;
    const { devcontainerFilePath, automationsFilePath, technicalDescription } = project;
    const prebuilds = prebuildConfiguration ?? (current.prebuildConfiguration && { enabled: false });
    return [
      {
        case: "updateProject",
        value: {
          ...{ projectId: id, name: metadata?.name ?? "", devcontainerFilePath, automationsFilePath },
          ...(initializer && { initializer }),
          ...(prebuilds && { prebuildConfiguration: prebuilds }),
          recommendedEditors: recommendedEditors ?? {},
          // No operation returns it, so an export does not contain it.
          ...(valueAt(content, ["technicalDescription"]) !== undefined && { technicalDescription }),
          annotations: { values: { ...annotations } },
        },
      },
      ...classesOf(id, environmentClasses),
    ];
  },
  remove: (projectId) => ({ case: "deleteProject", value: { projectId } }),
  isGone: ({ desiredPhase }) => desiredPhase === ProjectPhase.DELETED,
});

/** Returns the change of a project's classes; none when the document has none, because the list cannot be emptied. */
function classesOf(
  projectId: string,
  classes: MessageShape<typeof ProjectSchema>["environmentClasses"],
): Change[] {
  if (classes.length === 0) return [];
  return [
    { case: "updateProjectEnvironmentClasses", value: { projectId, projectEnvironmentClasses: classes } },
  ];
}
