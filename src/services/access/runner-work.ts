import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { workflowError } from "../../domain/workflow/execution/workflow-error.ts";
import { removeWork } from "../../store/runner/work.ts";
import { findWorkBoundTo, findWorkLeasedBy } from "../../store/runner/work-runner.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { finishAction } from "../workflow/action/action-progress.ts";
import { handlerOf } from "./work-handlers.ts";

/** Ends the leases that a runner holds as if it had been lost: others may get the work. */
export async function endLeasesOf(tx: WriteTransaction, scope: Scope, runnerId: string): Promise<void> {
  for (const lease of await findWorkLeasedBy(tx.db, scope, runnerId)) {
    await handlerOf(lease.kind).end(tx, scope, lease, { kind: "lost" });
  }
}

/**
 * Ends the work that only a runner could have done, bound to it or for a class
 * of it. Its environments and classes must be gone already, so that nothing new
 * is queued for them.
 */
export async function endWorkFor(
  tx: WriteTransaction,
  scope: Scope,
  runnerId: string,
  classIds: readonly string[],
): Promise<void> {
  for (const work of await findWorkBoundTo(tx.db, scope, runnerId, classIds)) {
    await removeWork(tx, work.id);
    if (work.kind !== WorkKind.ACTION) continue;
    const error = workflowError("runner_removed", "the runner that could have taken the action was deleted");
    await finishAction(tx, scope, work.subject_id, { kind: "failed", error }, []);
  }
}
