import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  type Project,
  Project_UsedBySchema,
  type ProjectPhase,
  ProjectSchema,
} from "#gen/service/v1/project_pb.js";
import { projectSearchText } from "../../domain/project/project.ts";
import { shortText, textAt } from "../expressions.ts";
import { removeRoleAssignmentsOn } from "../identity/role-assignment.ts";
import type { SourceSetterChange } from "../identity/source-setter.ts";
import { fromBody, toBody, toJsonObject } from "../json.ts";
import { SHORT_BYTES } from "../listed-row.ts";
import { removeSecretsOf } from "../policy/secret.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import { storedMessage } from "../stored-message.ts";
import { syncPrebuildSchedule } from "./prebuild-schedule.ts";
import { replaceProjectIndex } from "./project-index.ts";
import type { ProjectTable } from "./project-schema.ts";

/**
 * Returns a project as reads return it: with its users, without its technical description. The body
 * is never an empty object.
 */
export function storedProject({ body, used_by }: Pick<ProjectTable, "body" | "used_by">): Project {
  return storedMessage(ProjectSchema, () => `${body.slice(0, -1)},"usedBy":${used_by}}`);
}

/** Returns the same project, for reading or changing. */
function projectOfRow(row: Pick<ProjectTable, "body" | "used_by">): Project {
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

/** Returns the project without its technical description; undefined when the scope has no project with that id. */
export async function findProject(db: Reader, scope: Scope, id: string): Promise<Project | undefined> {
  const [row] = await selectProject(db, { id, organizationId: scope.organizationId });
  return row && projectOfRow(row);
}

const selectShortProject = prepared<
  { id: string; organizationId: string },
  { body: string | null; used_by: string }
>((db, { id, organizationId }) =>
  db
    .selectFrom("project")
    .select([shortText("project.body", SHORT_BYTES).as("body"), "used_by"])
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

/**
 * Returns the result of {@link findProject} as a message that is decoded only when it is read, since most are only
 * sent.
 * @param beforeLongText called before a long text is read, which it may delay
 */
export async function findStoredProject(
  db: Reader,
  scope: Scope,
  id: string,
  beforeLongText: () => Promise<void> | undefined = () => undefined,
): Promise<Project | undefined> {
  const key = { id, organizationId: scope.organizationId };
  const [short] = await selectShortProject(db, key);
  if (!short) return undefined;
  const { body, used_by } = short;
  if (body !== null) return storedProject({ body, used_by });
  await beforeLongText();
  const [whole] = await selectProject(db, key);
  return whole && storedProject(whole);
}

/**
 * Returns the desired phases of the named projects that exist in the scope, in no particular order; a request may name
 * a thousand.
 */
export async function findDesiredPhases(
  db: Reader,
  scope: Scope,
  ids: readonly string[],
): Promise<{ readonly id: string; readonly desiredPhase: ProjectPhase }[]> {
  if (ids.length === 0) return [];
  return builderOf(db)
    .selectFrom("project")
    .select(["id", "desired_phase as desiredPhase"])
    .where("organization_id", "=", scope.organizationId)
    .where("id", "in", [...new Set(ids)])
    .execute();
}

const selectName = prepared<{ id: string; organizationId: string }, { name: string | null }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("project")
      .select(textAt("project.body", ["metadata", "name"]).as("name"))
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Returns the name of a project, without reading the rest of it. */
export async function findProjectName(db: Reader, scope: Scope, id: string): Promise<string | undefined> {
  const [row] = await selectName(db, { id, organizationId: scope.organizationId });
  return row?.name ?? undefined;
}

/** Returns the project with its technical description, as an update needs it. */
export async function findWholeProject(db: Reader, scope: Scope, id: string): Promise<Project | undefined> {
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
    search_row: row.search_row,
    technical_description: row.technical_description,
    used_by: row.used_by,
    body: row.body,
  }),
);

/**
 * Adds a project.
 * @returns the project as it was stored, with the technical description
 */
export async function insertProject(tx: WriteTransaction, scope: Scope, project: Project): Promise<Project> {
  const json = toJsonObject(ProjectSchema, project);
  const columns = changingColumns(project, json);
  await insertRow(tx.db, {
    ...columns,
    search_row: await tx.indexText(scope, columns.search_text),
    id: project.id,
    organization_id: scope.organizationId,
    creator_id: project.metadata?.creator?.id ?? "",
    popularity: 0,
    used_by: json.usedBy
      ? JSON.stringify(json.usedBy)
      : toBody(Project_UsedBySchema, create(Project_UsedBySchema)),
  });
  await replaceProjectIndex(tx.db, scope, undefined, project);
  await syncPrebuildSchedule(tx, scope, undefined, project);
  tx.record({
    organizationId: scope.organizationId,
    type: "project",
    id: project.id,
    kind: "created",
    after: json,
  });
  return storedMessage(ProjectSchema, () => JSON.stringify(json));
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

const updateSearchRow = prepared<Pick<ProjectTable, "id" | "organization_id" | "search_row">, unknown>(
  (db, { id, organization_id, search_row }) =>
    db
      .updateTable("project")
      .set({ search_row })
      .where("id", "=", id)
      .where("organization_id", "=", organization_id),
);

const selectSearchText = prepared<
  Pick<ProjectTable, "id" | "organization_id">,
  Pick<ProjectTable, "search_text">
>((db, { id, organization_id }) =>
  db
    .selectFrom("project")
    .select("search_text")
    .where("id", "=", id)
    .where("organization_id", "=", organization_id),
);

/**
 * Replaces a project; `before` and `after` contain the technical description.
 * @param setBy the setters of the source before and after, if they were replaced too: for the audit row
 * @returns `after` as it was stored, with the technical description
 */
export async function updateProject(
  tx: WriteTransaction,
  scope: Scope,
  before: Project,
  after: Project,
  setBy?: SourceSetterChange,
): Promise<Project> {
  const json = toJsonObject(ProjectSchema, after);
  const columns = changingColumns(after, json);
  const place = { id: after.id, organization_id: scope.organizationId };
  // The stored text is the one in the index: an earlier release may have made another text of the
  // same project.
  const [stored] = await selectSearchText(tx.db, place);
  await updateRow(tx.db, { ...columns, ...place });
  if (columns.search_text !== stored?.search_text) {
    const search_row = await tx.indexText(scope, columns.search_text);
    await updateSearchRow(tx.db, { ...place, search_row });
  }
  await replaceProjectIndex(tx.db, scope, before, after);
  await syncPrebuildSchedule(tx, scope, before, after);
  tx.record({
    organizationId: scope.organizationId,
    type: "project",
    id: after.id,
    kind: "updated",
    before: { ...toJsonObject(ProjectSchema, before), ...(setBy && { sourceSetBy: setBy.before }) },
    after: setBy ? { ...json, sourceSetBy: setBy.after } : json,
  });
  return storedMessage(ProjectSchema, () => JSON.stringify(json));
}

/**
 * Removes the row permanently, with the project's secrets; no environment may refer to it, and no
 * prebuild of it may be left.
 */
export async function removeProject(tx: WriteTransaction, scope: Scope, project: Project): Promise<void> {
  await removeSecretsOf(tx, scope, project.id);
  await removeRoleAssignmentsOn(tx, scope, project.id, null);
  await builderOf(tx.db)
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

/**
 * Returns the columns that are derived from a project.
 * @param json the JSON of the project
 */
function changingColumns(project: Project, { usedBy: _, ...body }: JsonObject) {
  return {
    desired_phase: project.desiredPhase,
    search_text: projectSearchText(project),
    technical_description: project.technicalDescription,
    body: JSON.stringify({ ...body, technicalDescription: "" }),
  };
}
