import { type Approval, ApprovalState as State } from "#gen/service/v1/approval_pb.js";
import { endedApproval, isPending } from "../../domain/approval/approval.ts";
import {
  type AskerKey,
  type FoundApproval,
  findApproval,
  findPendingApprovals,
  updateApproval,
} from "../../store/approval/approval.ts";
import { findApprovalsOfWorkflow, removeApproval } from "../../store/approval/approval-removal.ts";
import type { Handle, Scope, WriteTransaction } from "../../store/store.ts";
import { createHook } from "../call/hook.ts";

/** The hook that runs in the same transaction after an approval was decided or has expired. */
export const approvalEnded =
  createHook<[tx: WriteTransaction, scope: Scope, approval: Approval]>("ends of approvals");

/** The reason that expired approvals carry. */
const EXPIRED = "nobody decided in time";

/** Expires an approval, which counts as denied, unless it was decided meanwhile. @returns whether it was pending */
export async function expireApproval(tx: WriteTransaction, scope: Scope, id: string): Promise<boolean> {
  const before = await findApproval(tx.db, scope, id);
  if (!before || !isPending(before)) return false;
  const after = await updateApproval(
    tx,
    scope,
    before,
    endedApproval(before, State.EXPIRED, EXPIRED, tx.now),
  );
  await approvalEnded.call(tx, scope, after);
  return true;
}

/** Cancels the pending approvals of an asker, without notifying it. */
export async function cancelApprovals(
  tx: WriteTransaction,
  scope: Scope,
  asker: AskerKey,
  reason: string,
): Promise<void> {
  for (const before of await findPendingApprovals(tx.db, scope, asker)) {
    await cancelApproval(tx, scope, before, reason);
  }
}

/** Cancels a pending approval, without notifying the asker. */
export async function cancelApproval(
  tx: WriteTransaction,
  scope: Scope,
  before: FoundApproval,
  reason: string,
): Promise<void> {
  await updateApproval(tx, scope, before, endedApproval(before, State.CANCELLED, reason, tx.now));
}

/**
 * Removes up to `limit` approvals that the steps of a workflow have asked for. Pending ones are cancelled first.
 * @returns the number of removed approvals
 */
export async function removeApprovalsOfWorkflow(
  tx: WriteTransaction,
  scope: Scope,
  workflowId: Handle<"workflow">,
  limit: number,
): Promise<number> {
  const found = await findApprovalsOfWorkflow(tx.db, scope, workflowId, limit);
  for (const approval of found) {
    if (isPending(approval)) await cancelApproval(tx, scope, approval, "the workflow was deleted");
    await removeApproval(tx, scope, approval);
  }
  return found.length;
}

/** Removes the approvals of the pushes of an environment that is being deleted. Pending ones are cancelled first. */
export async function removeApprovalsOfPushes(
  tx: WriteTransaction,
  scope: Scope,
  approvals: readonly FoundApproval[],
): Promise<void> {
  for (const approval of approvals) {
    if (isPending(approval)) await cancelApproval(tx, scope, approval, "the environment was removed");
    await removeApproval(tx, scope, approval);
  }
}
