import type { Kysely } from "kysely";
import type { Schema } from "../schema.ts";
import type { Scope, WriteTransaction } from "../store.ts";

/** Whether runners are waited for: `cut_off` does not. */
export type StopMode = "cancel" | "cut_off";

/** A stop of executions or environments that is too much for one transaction. */
export interface PendingStop {
  readonly mode: StopMode;
  /** One execution, all that a workflow has or an executor runs, or the environments that a creator made. */
  readonly target: "execution" | "workflow" | "executor" | "creator";
  readonly targetId: string;
}

/** A stop as it is stored. */
export interface StoredStop extends PendingStop {
  readonly organizationId: string;
  /** Made when the stop was asked for: what began later has greater ids, and is not meant. */
  readonly upTo: string;
}

/** Keeps what is left of a stop for jobs/stops.ts, for what there is now. */
export async function insertPendingStop(
  tx: WriteTransaction,
  scope: Scope,
  { mode, target, targetId }: PendingStop,
): Promise<void> {
  await tx.db
    .insertInto("pending_stop")
    .values({ organization_id: scope.organizationId, mode, target, target_id: targetId, up_to: tx.newId() })
    .onConflict((conflict) =>
      conflict
        .columns(["organization_id", "target", "target_id", "mode"])
        .doUpdateSet({ up_to: (eb) => eb.ref("excluded.up_to") }),
    )
    .execute();
}

/** Finds up to `limit` stops of all organizations that follow `last` in the order of their keys. For the system. */
export async function findPendingStops(
  db: Kysely<Schema>,
  limit: number,
  last?: StoredStop,
): Promise<StoredStop[]> {
  let query = db
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

/** Removes a stop that is done, unless it was asked for again meanwhile. */
export async function removePendingStop(tx: WriteTransaction, stop: StoredStop): Promise<void> {
  await tx.db
    .deleteFrom("pending_stop")
    .where("organization_id", "=", stop.organizationId)
    .where("target", "=", stop.target)
    .where("target_id", "=", stop.targetId)
    .where("mode", "=", stop.mode)
    .where("up_to", "=", stop.upTo)
    .execute();
}
