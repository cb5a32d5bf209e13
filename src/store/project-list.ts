import type { Kysely, SelectQueryBuilder } from "kysely";
import type { Project } from "#gen/service/v1/project_pb.js";
import type { PagePosition } from "../domain/page.ts";
import { PROJECT_COLUMNS, projectOfRow } from "./project.ts";
import type { Schema } from "./schema.ts";
import { contains } from "./sqlite/expressions.ts";
import type { Scope } from "./store.ts";

/** What a list is narrowed to: fields combine with AND, values inside one with OR; empty means any. */
export interface ProjectFilter {
  readonly projectIds: readonly string[];
  /** Folded; empty means any. */
  readonly search: string;
  readonly runnerIds: readonly string[];
  readonly runnerKinds: readonly number[];
  readonly remoteUris: readonly string[];
  readonly creatorIds: readonly string[];
  /** Pairs that a project must all have. */
  readonly annotations: Readonly<Record<string, string>>;
}

export interface ProjectOrder {
  readonly field: "id" | "popularity";
  readonly direction: "asc" | "desc";
}

export interface ListedProject {
  readonly project: Project;
  readonly position: PagePosition;
}

/**
 * Up to `limit` projects behind `after`. By popularity, ties stand by ascending
 * id when the score descends, and exactly mirrored when it ascends.
 */
export async function listProjects(
  db: Kysely<Schema>,
  scope: Scope,
  filter: ProjectFilter,
  order: ProjectOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedProject[]> {
  const rows =
    order.field === "id"
      ? await byId(matching(db, scope, filter).select(PROJECT_COLUMNS), order, after, limit)
      : await byPopularity(matching(db, scope, filter).select(PROJECT_COLUMNS), order, after, limit);
  return rows.map((row) => ({
    project: projectOfRow(row),
    position: { key: order.field === "id" ? 0 : row.popularity, id: row.id },
  }));
}

/** How many projects match, counted no further than `limit`. */
export async function countProjects(
  db: Kysely<Schema>,
  scope: Scope,
  filter: ProjectFilter,
  limit: number,
): Promise<number> {
  const { count } = await db
    .selectFrom(matching(db, scope, filter).select("project.id").limit(limit).as("found"))
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

type Rows = SelectQueryBuilder<
  Schema,
  "project",
  Pick<Schema["project"], "id" | "popularity" | "body" | "used_by">
>;

function byId(query: Rows, { direction }: ProjectOrder, after: PagePosition | undefined, limit: number) {
  const rest = after ? query.where("project.id", direction === "asc" ? ">" : "<", after.id) : query;
  return rest.orderBy("project.id", direction).limit(limit).execute();
}

/** Two walks along the index, the ties of the last score and what lies behind: an OR of both would scan. */
async function byPopularity(
  query: Rows,
  { direction }: ProjectOrder,
  after: PagePosition | undefined,
  limit: number,
) {
  const idDirection = direction === "desc" ? "asc" : "desc";
  const ordered = query.orderBy("project.popularity", direction).orderBy("project.id", idDirection);
  if (!after) return ordered.limit(limit).execute();
  const ties = await ordered
    .where("project.popularity", "=", after.key)
    .where("project.id", idDirection === "asc" ? ">" : "<", after.id)
    .limit(limit)
    .execute();
  if (ties.length === limit) return ties;
  const behind = await ordered
    .where("project.popularity", direction === "desc" ? "<" : ">", after.key)
    .limit(limit - ties.length)
    .execute();
  return [...ties, ...behind];
}

function matching(db: Kysely<Schema>, scope: Scope, filter: ProjectFilter) {
  let query = db.selectFrom("project").where("project.organization_id", "=", scope.organizationId);
  if (filter.projectIds.length > 0) query = query.where("project.id", "in", filter.projectIds);
  if (filter.creatorIds.length > 0) query = query.where("project.creator_id", "in", filter.creatorIds);
  // The text holds one value a line; a search across lines would find what no value contains.
  if (filter.search.includes("\n")) query = query.where((eb) => eb.lit(false));
  else if (filter.search !== "") query = query.where(contains("project.search_text", filter.search));
  if (filter.remoteUris.length > 0) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("project_remote")
          .select("project_remote.project_id")
          .whereRef("project_remote.project_id", "=", "project.id")
          .where("project_remote.remote_uri", "in", filter.remoteUris),
      ),
    );
  }
  if (filter.runnerIds.length > 0) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("project_environment_class")
          .select("project_environment_class.project_id")
          .whereRef("project_environment_class.project_id", "=", "project.id")
          .where("project_environment_class.runner_id", "in", filter.runnerIds),
      ),
    );
  }
  if (filter.runnerKinds.length > 0) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("project_environment_class")
          .innerJoin("runner", "runner.id", "project_environment_class.runner_id")
          .select("project_environment_class.project_id")
          .whereRef("project_environment_class.project_id", "=", "project.id")
          .where("runner.kind", "in", filter.runnerKinds),
      ),
    );
  }
  for (const [key, value] of Object.entries(filter.annotations)) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("project_annotation")
          .select("project_annotation.project_id")
          .whereRef("project_annotation.project_id", "=", "project.id")
          .where("project_annotation.key", "=", key)
          .where("project_annotation.value", "=", value),
      ),
    );
  }
  return query;
}
