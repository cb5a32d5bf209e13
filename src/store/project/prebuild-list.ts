import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import type { Prebuild, PrebuildState } from "../../domain/project/prebuild.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";
import { PREBUILD_COLUMNS, prebuildOfRow } from "./prebuild.ts";

/**
 * The conditions of a list: fields combine with AND, values inside one with OR; empty means any.
 */
export interface PrebuildListFilter {
  readonly projectIds: readonly string[];
  /** Undefined means any. */
  readonly states: readonly PrebuildState[] | undefined;
  /** True to list those that callers requested. */
  readonly isManualListed: boolean;
  /** True to list those that schedules created. */
  readonly isScheduledListed: boolean;
  /** For prebuilds created by a schedule, the executor counts. */
  readonly creatorIds: readonly string[];
  readonly executorIds: readonly string[];
}

/** Returns up to `limit` prebuilds after `after`, the newest first. */
export async function findPrebuildPage(
  db: Reader,
  { organizationId }: Scope,
  filter: PrebuildListFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Prebuild>[]> {
  const { projectIds, states, isManualListed, isScheduledListed, creatorIds, executorIds } = filter;
  if (states?.length === 0 || !(isManualListed || isScheduledListed)) return [];
  const own = builderOf(db)
    .selectFrom("prebuild")
    .where(checkDeadline())
    .where("prebuild.organization_id", "=", organizationId);
  const fitting = own
    .select([...PREBUILD_COLUMNS, ...bodyColumns("prebuild")])
    .$if(projectIds.length > 0, (rows) => rows.where("project_id", "in", projectIds))
    .$if(states !== undefined, (rows) => rows.where("state", "in", states ?? []))
    .$if(!isScheduledListed, (rows) => rows.where("creator_id", "is not", null))
    .$if(!isManualListed, (rows) => rows.where("creator_id", "is", null))
    .$if(executorIds.length > 0, (rows) => rows.where("executor_id", "in", executorIds))
    .$if(creatorIds.length > 0, (rows) =>
      rows.where((eb) => eb(eb.fn.coalesce("creator_id", "executor_id"), "in", creatorIds)),
    );
  const order: RowOrder = { columns: ["prebuild.id"], direction: "desc", after: after && [after.id] };
  const rows = await firstRows(own, fitting, order, limit);
  return listedRows(db, "prebuild", rows, positionById, prebuildOfRow);
}
