import type { WorkflowAction } from "#gen/service/v1/workflow_pb.js";
import { requireSatisfiable } from "../../domain/policy/approval-deciders.ts";
import { approvalAt, requireApprovalStepsKnown } from "../../domain/workflow/execution/approval-step.ts";
import { APPROVAL_STEPS_LEVEL, mayStore } from "../../store/feature-level.ts";
import { findUnblockedMembers } from "../../store/identity/member.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/**
 * Requires that the members of the organization could satisfy the approval steps that a request writes.
 *
 * @throws DomainError VALUE_UNUSABLE; PHASE_UNSUITABLE while servers run that do not know such steps
 */
export async function requireApprovalsPossible(
  tx: WriteTransaction,
  scope: Scope,
  {
    action,
    report,
  }: { readonly action?: WorkflowAction | undefined; readonly report?: WorkflowAction | undefined },
): Promise<void> {
  const steps = Object.entries({ action, report }).flatMap(([name, part]) =>
    (part?.steps ?? []).flatMap((_, index) => {
      const approval = approvalAt(part?.steps ?? [], index);
      return approval ? [{ approval, field: `${name}.steps[${index}].approval.deciders` }] : [];
    }),
  );
  if (steps.length === 0) return;
  requireApprovalStepsKnown(mayStore(tx, APPROVAL_STEPS_LEVEL));
  const userIds = new Set(steps.flatMap(({ approval }) => approval.deciders?.userIds ?? []));
  const members = await findUnblockedMembers(tx.db, scope, [...userIds]);
  for (const { approval, field } of steps) requireSatisfiable(approval.deciders, members, field);
}
