import type { SelectQueryBuilder } from "kysely";
import { type Environment, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import type { ListedRow, PagePosition } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { countRows, firstRows, firstRowsInPhases, type RowOrder } from "../first-rows.ts";
import { type BodyRow, bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import { matchesSearch } from "../scanned-search.ts";
import type { Schema } from "../schema.ts";
import type { Reader, Scope } from "../store.ts";
import { storedMessage } from "../stored-message.ts";

/**
 * The conditions of a list: fields combine with AND, values inside one with OR; empty means any.
 */
export interface EnvironmentFilter {
  readonly runnerIds: readonly string[];
  readonly phases: readonly number[];
  readonly creatorIds: readonly string[];
  readonly projectIds: readonly string[];
  readonly runnerKinds: readonly number[];
  /** Milliseconds since 1970 UTC, exclusive; undefined means any. */
  readonly createdBefore: number | undefined;
  /** Folded; empty means any. */
  readonly search: string;
  readonly sessionIds: readonly string[];
  /** True for those that are archived, false for those that are not; undefined means both. */
  readonly archived: boolean | undefined;
}

export interface EnvironmentOrder {
  readonly field: "id" | "archivedAt";
  readonly direction: "asc" | "desc";
}

/** Sort key of an environment that is not archived: it sorts after every time. */
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Returns up to `limit` environments after `after`. In the order of archival, equal times
 * are ordered by id in the same direction, and environments that are not archived come last when
 * the order ascends and first when it descends.
 */
export async function findEnvironmentPage(
  db: Reader,
  scope: Scope,
  filter: EnvironmentFilter,
  order: EnvironmentOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Environment>[]> {
  const rows =
    order.field === "archivedAt"
      ? await byArchival(db, scope, filter, order, after, limit)
      : await byId(db, scope, filter, order, after, limit);
  const positionOf = (row: Row) => ({
    key: order.field === "id" ? 0 : (row.archived_at ?? NEVER),
    id: row.id,
  });
  return listedRows(db, "environment", rows, positionOf, ({ body }) =>
    storedMessage(EnvironmentSchema, body),
  );
}

/** Returns the number of matching environments, counted up to `limit`. */
export async function countEnvironments(
  db: Reader,
  scope: Scope,
  filter: EnvironmentFilter,
  limit: number,
): Promise<number> {
  const own = environmentsOf(db, scope);
  return countRows(db, own, matching(own, filter), { columns: [ID], direction: "asc" }, limit);
}

const ID = "environment.id";
const ARCHIVED_AT = "environment.archived_at";
const COLUMNS = ["environment.id", "environment.archived_at", ...bodyColumns("environment")] as const;

type Row = Pick<Schema["environment"], "archived_at"> & BodyRow;
type Rows = SelectQueryBuilder<Schema, "environment", object>;

function byId(
  db: Reader,
  scope: Scope,
  filter: EnvironmentFilter,
  { direction }: EnvironmentOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<Row[]> {
  const own = environmentsOf(db, scope);
  const fitting = matching(own, { ...filter, phases: [] });
  const [all, some] = [own.select(COLUMNS), fitting.select(COLUMNS)];
  return firstRowsInPhases("environment", all, some, filter.phases, { direction, after }, limit);
}

/**
 * Returns the segments of the order, each one scan of the index: an OR of them would scan the
 * table.
 */
async function byArchival(
  db: Reader,
  scope: Scope,
  filter: EnvironmentFilter,
  { direction }: EnvironmentOrder,
  after: PagePosition | undefined,
  limit: number,
): Promise<Row[]> {
  const own = environmentsOf(db, scope);
  const never = { own: own.where(ARCHIVED_AT, "is", null), columns: [ID] } as const;
  const archived = { own: own.where(ARCHIVED_AT, "is not", null), columns: [ARCHIVED_AT, ID] } as const;
  let stretches: (Omit<RowOrder, "direction"> & { readonly own: Rows })[];
  if (!after) {
    stretches = direction === "asc" ? [archived, never] : [never, archived];
  } else if (after.key === NEVER) {
    const rest = { ...never, after: [after.id] };
    stretches = direction === "asc" ? [rest] : [rest, archived];
  } else {
    const rest = { ...archived, after: [after.key, after.id] };
    stretches = direction === "asc" ? [rest, never] : [rest];
  }
  const rows: Row[] = [];
  for (const { own, ...order } of stretches) {
    if (rows.length === limit) break;
    const fitting = matching(own, filter).select(COLUMNS);
    rows.push(...(await firstRows(own, fitting, { ...order, direction }, limit - rows.length)));
  }
  return rows;
}

function environmentsOf(db: Reader, scope: Scope) {
  return builderOf(db)
    .selectFrom("environment")
    .where(checkDeadline())
    .where("environment.organization_id", "=", scope.organizationId);
}

function matching(own: Rows, filter: EnvironmentFilter): Rows {
  let query = own;
  if (filter.runnerIds.length > 0) query = query.where("environment.runner_id", "in", filter.runnerIds);
  if (filter.phases.length > 0) query = query.where("environment.phase", "in", filter.phases);
  if (filter.creatorIds.length > 0) query = query.where("environment.creator_id", "in", filter.creatorIds);
  if (filter.projectIds.length > 0) query = query.where("environment.project_id", "in", filter.projectIds);
  if (filter.sessionIds.length > 0) query = query.where("environment.session_id", "in", filter.sessionIds);
  if (filter.archived !== undefined)
    query = query.where(ARCHIVED_AT, filter.archived ? "is not" : "is", null);
  if (filter.createdBefore !== undefined) {
    query = query.where("environment.created_at", "<", filter.createdBefore);
  }
  if (filter.search !== "") query = query.where(matchesSearch("environment", filter.search));
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
