import type { ExpressionBuilder } from "kysely";
import { type EnvironmentClass, EnvironmentClassSchema } from "#gen/service/v1/runner_configuration_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import type { Schema } from "../schema.ts";
import type { Reader, Scope } from "../store.ts";

/**
 * The conditions of a list: fields combine with AND, values inside one with OR; empty means any.
 */
export interface EnvironmentClassFilter {
  readonly runnerIds: readonly string[];
  readonly runnerKinds: readonly number[];
  /** Required value of `enabled`; undefined for both. */
  readonly enabled: boolean | undefined;
  /**
   * Restricts to classes that accept environments of the caller, or to all others; undefined for
   * both.
   */
  readonly accepting:
    | {
        readonly asked: boolean;
        readonly runnerKinds: readonly number[];
        /** True to include runners that reported to be on a member's own machine. */
        readonly local: boolean;
      }
    | undefined;
}

/** Returns up to `limit` classes after `after`, by id ascending. */
export async function findEnvironmentClassPage(
  db: Reader,
  scope: Scope,
  filter: EnvironmentClassFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<EnvironmentClass>[]> {
  const own = builderOf(db)
    .selectFrom("environment_class")
    .select(["environment_class.id", ...bodyColumns("environment_class")])
    .where(checkDeadline())
    .where("environment_class.organization_id", "=", scope.organizationId);
  let query = own;
  if (filter.runnerIds.length > 0) query = query.where("environment_class.runner_id", "in", filter.runnerIds);
  if (filter.enabled !== undefined) {
    query = query.where("environment_class.enabled", "=", filter.enabled ? 1 : 0);
  }
  if (filter.runnerKinds.length > 0) query = query.where((eb) => onRunnerOf(eb, filter.runnerKinds));
  const { accepting: taking } = filter;
  if (taking) {
    query = query.where((eb) => {
      const takes = eb.and([
        eb("environment_class.enabled", "=", 1),
        taking.runnerKinds.length > 0 ? onRunnerOf(eb, taking.runnerKinds, taking.local) : eb.lit(false),
      ]);
      return taking.asked ? takes : eb.not(takes);
    });
  }
  const order: RowOrder = { columns: ["environment_class.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "environment_class", rows, positionById, ({ body }) =>
    fromBody(EnvironmentClassSchema, body),
  );
}

function onRunnerOf(
  eb: ExpressionBuilder<Schema, "environment_class">,
  kinds: readonly number[],
  local = true,
) {
  const ofKind = eb
    .selectFrom("runner")
    .select("runner.id")
    .whereRef("runner.id", "=", "environment_class.runner_id")
    .where("runner.kind", "in", kinds);
  return eb.exists(local ? ofKind : ofKind.where("runner.local", "=", 0));
}
