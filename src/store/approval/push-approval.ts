import { type Approval, ApprovalSchema } from "#gen/service/v1/approval_pb.js";
import { unindexed } from "../expressions.ts";
import { toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import { approvalOfRow, changeOf, type FoundApproval, recordOf } from "./approval.ts";
import type { ApprovalTable } from "./approval-schema.ts";

const selectPushes = prepared<{ organizationId: string; environmentId: string }, ApprovalTable>(
  (db, { organizationId, environmentId }) =>
    db
      .selectFrom("approval")
      .selectAll()
      .where("environment_id", "=", environmentId)
      .where(unindexed("approval.organization_id"), "=", organizationId)
      .orderBy("id", "desc"),
);

/** Returns the approvals of pushes of an environment, the newest first. */
export async function findApprovalsOfPushes(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<FoundApproval[]> {
  return (await selectPushes(db, { organizationId, environmentId })).map(approvalOfRow);
}

const selectPushesOfAction = prepared<{ organizationId: string; actionId: string }, ApprovalTable>(
  (db, { organizationId, actionId }) =>
    db
      .selectFrom("approval")
      .selectAll()
      .where("action_id", "=", actionId)
      .where("step_index", "is", null)
      .where(unindexed("approval.organization_id"), "=", organizationId)
      .orderBy("id", "desc"),
);

/** Returns the approvals of pushes that a step of an action has requested, in any attempt, the newest first. */
export async function findPushApprovalsOfStep(
  db: Reader,
  { organizationId }: Scope,
  actionId: string,
  stepIndex: number,
): Promise<FoundApproval[]> {
  const rows = await selectPushesOfAction(db, { organizationId, actionId });
  return rows.map(approvalOfRow).filter(({ asker }) => asker?.stepIndex === stepIndex);
}

/** Records that an approved push is carried out. */
export async function updateCarriedOut(
  tx: WriteTransaction,
  scope: Scope,
  before: FoundApproval,
  after: Approval,
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("approval")
    .set({ body: toBody(ApprovalSchema, after) })
    .where("id", "=", before.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    ...changeOf(scope, after),
    kind: "updated",
    operation: "approval/carried_out",
    before: recordOf(before),
    after: recordOf(after),
  });
}
