import { clone } from "@bufbuild/protobuf";
import type { Kysely } from "kysely";
import { type Project, Project_UsedBySchema, ProjectSchema } from "#gen/service/v1/project_pb.js";
import { projectSearchText } from "../domain/project.ts";
import { fromBody, toBody } from "./json.ts";
import { followPrebuilds } from "./prebuild-schedule.ts";
import { prepared } from "./prepared.ts";
import { replaceProjectIndex } from "./project-index.ts";
import type { ProjectTable } from "./project-schema.ts";
import type { Schema } from "./schema.ts";
import type { Scope, WriteTransaction } from "./store.ts";

/** The columns that a project is read back from. */
export const PROJECT_COLUMNS = [
  "project.id",
  "project.popularity",
  "project.body",
  "project.used_by",
] as const;

/** A project as reads answer it: with its users, without its technical description. */
export function projectOfRow(row: Pick<ProjectTable, "body" | "used_by">): Project {
  const project = fromBody(ProjectSchema, row.body);
  project.usedBy = fromBody(Project_UsedBySchema, row.used_by);
  return project;
}

const selectProject = prepared<
  { id: string; organizationId: string },
  Pick<ProjectTable, "body" | "used_by" | "technical_description">
>((db, { id, organizationId }) =>
  db
    .selectFrom("project")
    .select(["body", "used_by", "technical_description"])
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

/** The project without its technical description, or undefined when the scope has none of that id. */
export async function findProject(
  db: Kysely<Schema>,
  scope: Scope,
  id: string,
): Promise<Project | undefined> {
  const [row] = await selectProject(db, { id, organizationId: scope.organizationId });
  return row && projectOfRow(row);
}

/** Those of the named projects that the scope has, in no order, without their technical descriptions. */
export async function findProjects(
  db: Kysely<Schema>,
  scope: Scope,
  ids: readonly string[],
): Promise<Project[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("project")
    .select(["body", "used_by"])
    .where("organization_id", "=", scope.organizationId)
    .where("id", "in", [...new Set(ids)])
    .execute();
  return rows.map(projectOfRow);
}

/** The project with its technical description, as an update starts from it. */
export async function findWholeProject(
  db: Kysely<Schema>,
  scope: Scope,
  id: string,
): Promise<Project | undefined> {
  const [row] = await selectProject(db, { id, organizationId: scope.organizationId });
  if (!row) return undefined;
  const project = projectOfRow(row);
  project.technicalDescription = row.technical_description;
  return project;
}

const insertRow = prepared<ProjectTable, unknown>((db, row) =>
  db.insertInto("project").values({
    id: row.id,
    organization_id: row.organization_id,
    creator_id: row.creator_id,
    desired_phase: row.desired_phase,
    popularity: row.popularity,
    search_text: row.search_text,
    technical_description: row.technical_description,
    used_by: row.used_by,
    body: row.body,
  }),
);

export async function insertProject(tx: WriteTransaction, scope: Scope, project: Project): Promise<void> {
  await insertRow(tx.db, {
    ...changingColumns(project),
    id: project.id,
    organization_id: scope.organizationId,
    creator_id: project.metadata?.creator?.id ?? "",
    popularity: 0,
    used_by: project.usedBy ? toBody(Project_UsedBySchema, project.usedBy) : "{}",
  });
  await replaceProjectIndex(tx.db, scope, undefined, project);
  await followPrebuilds(tx, scope, undefined, project);
  tx.record({
    organizationId: scope.organizationId,
    type: "project",
    id: project.id,
    kind: "created",
    after: toBody(ProjectSchema, project),
  });
}

const updateRow = prepared<
  Pick<
    ProjectTable,
    "id" | "organization_id" | "desired_phase" | "search_text" | "technical_description" | "body"
  >,
  unknown
>((db, row) =>
  db
    .updateTable("project")
    .set({
      desired_phase: row.desired_phase,
      search_text: row.search_text,
      technical_description: row.technical_description,
      body: row.body,
    })
    .where("id", "=", row.id)
    .where("organization_id", "=", row.organization_id),
);

/** Replaces a project; `before` and `after` carry the technical description. */
export async function updateProject(
  tx: WriteTransaction,
  scope: Scope,
  before: Project,
  after: Project,
): Promise<void> {
  await updateRow(tx.db, {
    ...changingColumns(after),
    id: after.id,
    organization_id: scope.organizationId,
  });
  await replaceProjectIndex(tx.db, scope, before, after);
  await followPrebuilds(tx, scope, before, after);
  tx.record({
    organizationId: scope.organizationId,
    type: "project",
    id: after.id,
    kind: "updated",
    before: toBody(ProjectSchema, before),
    after: toBody(ProjectSchema, after),
  });
}

/** Removes the row for good; no environment may refer to it, and no prebuild may be left of it. */
export async function removeProject(tx: WriteTransaction, scope: Scope, project: Project): Promise<void> {
  await tx.db
    .deleteFrom("project")
    .where("id", "=", project.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "project",
    id: project.id,
    kind: "deleted",
    before: toBody(ProjectSchema, project),
  });
}

function changingColumns(project: Project) {
  const body = clone(ProjectSchema, project);
  body.technicalDescription = "";
  delete body.usedBy;
  return {
    desired_phase: project.desiredPhase,
    search_text: projectSearchText(project),
    technical_description: project.technicalDescription,
    body: toBody(ProjectSchema, body),
  };
}
