import { type Runner, RunnerSchema } from "#gen/service/v1/runner_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/**
 * The conditions of a list: fields combine with AND, values inside one with OR; empty means any.
 */
export interface RunnerFilter {
  readonly creatorIds: readonly string[];
  readonly kinds: readonly number[];
}

/** Returns up to `limit` runners after `after`, by id ascending. */
export async function findRunnerPage(
  db: Reader,
  scope: Scope,
  filter: RunnerFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Runner>[]> {
  const own = builderOf(db)
    .selectFrom("runner")
    .select(["id", ...bodyColumns("runner")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  let query = own;
  if (filter.creatorIds.length > 0) query = query.where("creator_id", "in", filter.creatorIds);
  if (filter.kinds.length > 0) query = query.where("kind", "in", filter.kinds);
  const order: RowOrder = { columns: ["runner.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "runner", rows, positionById, ({ body }) => fromBody(RunnerSchema, body));
}
