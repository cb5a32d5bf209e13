import type { Kysely, SelectQueryBuilder } from "kysely";
import type { ListedRow, PagePosition } from "../domain/page.ts";
import { type BodyRow, bodyColumns, listedRows } from "./listed-row.ts";
import { mergePhases } from "./phase-walk.ts";
import type { Schema } from "./schema.ts";
import { contains, inTime } from "./sqlite/expressions.ts";
import type { Scope } from "./store.ts";

/** What a list is narrowed to: fields combine with AND, values inside one with OR; empty means any. */
export interface EnvironmentFilter {
  readonly runnerIds: readonly string[];
  readonly phases: readonly number[];
  readonly creatorIds: readonly string[];
  readonly projectIds: readonly string[];
  readonly runnerKinds: readonly number[];
  /** Milliseconds since 1970 UTC, itself excluded; undefined means any. */
  readonly createdBefore: number | undefined;
  /** Folded; empty means any. */
  readonly search: string;
  readonly sessionIds: readonly string[];
}

export interface EnvironmentOrder {
  readonly field: "id" | "archivedAt";
  readonly direction: "asc" | "desc";
}

/** Sort key of an environment that is not archived: it stands behind every time there is. */
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Up to `limit` environments in JSON behind `after`. By archival, equal times stand by
 * id in the same direction, and what is not archived comes last when the order
 * ascends and first when it descends.
 */
export async function listEnvironments(
  db: Kysely<Schema>,
  scope: Scope,
  filter: EnvironmentFilter,
  order: EnvironmentOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<string>[]> {
  const query = matching(db, scope, filter).select(COLUMNS);
  const rows =
    order.field === "archivedAt"
      ? await byArchival(query, order, after, limit)
      : filter.phases.length > 0
        ? await byIdInPhases(db, scope, filter, order, after, limit)
        : await byId(query, order, after, limit).execute();
  const positionOf = (row: Row) => ({
    key: order.field === "id" ? 0 : (row.archived_at ?? NEVER),
    id: row.id,
  });
  return listedRows(db, "environment", rows, positionOf, ({ body }) => body);
}

/** How many environments match, counted no further than `limit`. */
export async function countEnvironments(
  db: Kysely<Schema>,
  scope: Scope,
  filter: EnvironmentFilter,
  limit: number,
): Promise<number> {
  const { count } = await db
    .selectFrom(matching(db, scope, filter).select("environment.id").limit(limit).as("found"))
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

const COLUMNS = ["environment.id", "environment.archived_at", ...bodyColumns("environment")] as const;

type Row = Pick<Schema["environment"], "archived_at"> & BodyRow;
type Rows = SelectQueryBuilder<Schema, "environment", Row>;

function byId(query: Rows, { direction }: EnvironmentOrder, after: PagePosition | undefined, limit: number) {
  const rest = after ? query.where("environment.id", direction === "asc" ? ">" : "<", after.id) : query;
  return rest.orderBy("environment.id", direction).limit(limit);
}

async function byIdInPhases(
  db: Kysely<Schema>,
  scope: Scope,
  filter: EnvironmentFilter,
  order: EnvironmentOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<Row[]> {
  const ids = await mergePhases(filter.phases, order.direction, limit, (phase) => {
    const query = matching(db, scope, { ...filter, phases: [] })
      .select(COLUMNS)
      .where("environment.phase", "=", phase);
    return byId(query, order, after, limit).clearSelect().select("environment.id").execute();
  });
  return db
    .selectFrom("environment")
    .select(COLUMNS)
    .where("environment.id", "in", ids)
    .orderBy("environment.id", order.direction)
    .execute();
}

/** One walk along the index for each stretch of the order: an OR of them would scan. */
async function byArchival(
  query: Rows,
  { direction }: EnvironmentOrder,
  after: PagePosition | undefined,
  limit: number,
) {
  const onward = direction === "asc" ? ">" : "<";
  const archived = query
    .where("environment.archived_at", "is not", null)
    .orderBy("environment.archived_at", direction)
    .orderBy("environment.id", direction);
  const never = query.where("environment.archived_at", "is", null).orderBy("environment.id", direction);
  let stretches: Rows[];
  if (!after) {
    stretches = direction === "asc" ? [archived, never] : [never, archived];
  } else if (after.key === NEVER) {
    const rest = never.where("environment.id", onward, after.id);
    stretches = direction === "asc" ? [rest] : [rest, archived];
  } else {
    const ties = archived
      .where("environment.archived_at", "=", after.key)
      .where("environment.id", onward, after.id);
    const behind = archived.where("environment.archived_at", onward, after.key);
    stretches = direction === "asc" ? [ties, behind, never] : [ties, behind];
  }
  const rows: Row[] = [];
  for (const stretch of stretches) {
    if (rows.length === limit) break;
    rows.push(...(await stretch.limit(limit - rows.length).execute()));
  }
  return rows;
}

function matching(db: Kysely<Schema>, scope: Scope, filter: EnvironmentFilter) {
  let query = db.selectFrom("environment").where("environment.organization_id", "=", scope.organizationId);
  if (filter.runnerIds.length > 0) query = query.where("environment.runner_id", "in", filter.runnerIds);
  if (filter.phases.length > 0) query = query.where("environment.phase", "in", filter.phases);
  if (filter.creatorIds.length > 0) query = query.where("environment.creator_id", "in", filter.creatorIds);
  if (filter.projectIds.length > 0) query = query.where("environment.project_id", "in", filter.projectIds);
  if (filter.sessionIds.length > 0) query = query.where("environment.session_id", "in", filter.sessionIds);
  if (filter.createdBefore !== undefined) {
    query = query.where("environment.created_at", "<", filter.createdBefore);
  }
  // The text holds one value a line; a search across lines would find what no value contains.
  if (filter.search.includes("\n")) query = query.where((eb) => eb.lit(false));
  else if (filter.search !== "")
    query = query.where(inTime()).where(contains("environment.search_text", filter.search));
  if (filter.runnerKinds.length > 0) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("runner")
          .select("runner.id")
          .whereRef("runner.id", "=", "environment.runner_id")
          .where("runner.kind", "in", filter.runnerKinds),
      ),
    );
  }
  return query;
}
