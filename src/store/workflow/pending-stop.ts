import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

/** The kind of a stop: `cut_off` does not wait for runners. */
export type StopMode = "cancel" | "cut_off";

/** A stop of executions or environments that is too large for one transaction. */
export interface PendingStop {
  readonly mode: StopMode;
  /**
   * One execution, all executions of a workflow or an executor, or the environments of a creator.
   */
  readonly target: "execution" | "workflow" | "executor" | "creator";
  readonly targetId: string;
}

/** A stop in its stored form. */
export interface StoredStop extends PendingStop, Scope {
  /**
   * Id generated when the stop was requested: resources that began later have greater ids, and are
   * not affected.
   */
  readonly upTo: string;
}

/** Stores the remaining part of a stop for jobs/stops.ts, for the resources that exist now. */
export async function insertPendingStop(
  tx: WriteTransaction,
  scope: Scope,
  { mode, target, targetId }: PendingStop,
): Promise<void> {
  await builderOf(tx.db)
    .insertInto("pending_stop")
    .values({ organization_id: scope.organizationId, mode, target, target_id: targetId, up_to: tx.newId() })
    .onConflict((conflict) =>
      conflict
        .columns(["organization_id", "target", "target_id", "mode"])
        .doUpdateSet({ up_to: (eb) => eb.ref("excluded.up_to") }),
    )
    .execute();
}

/**
 * Returns up to `limit` stops of all organizations that follow `last` in the order of their keys.
 * For the system.
 */
export async function findPendingStops(db: Reader, limit: number, last?: StoredStop): Promise<StoredStop[]> {
  let query = builderOf(db)
    .selectFrom("pending_stop")
    .select(["organization_id as organizationId", "mode", "target", "target_id as targetId", "up_to as upTo"])
    .orderBy("organization_id")
    .orderBy("target")
    .orderBy("target_id")
    .orderBy("mode")
    .limit(limit);
  if (last) {
    const { organizationId, target, targetId, mode } = last;
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(
        refTuple("organization_id", "target", "target_id", "mode"),
        ">",
        tuple(organizationId, target, targetId, mode),
      ),
    );
  }
  return query.execute();
}

/** Removes a completed stop, unless it was requested again meanwhile. */
export async function removePendingStop(tx: WriteTransaction, stop: StoredStop): Promise<void> {
  await builderOf(tx.db)
    .deleteFrom("pending_stop")
    .where("organization_id", "=", stop.organizationId)
    .where("target", "=", stop.target)
    .where("target_id", "=", stop.targetId)
    .where("mode", "=", stop.mode)
    .where("up_to", "=", stop.upTo)
    .execute();
}
