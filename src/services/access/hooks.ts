/** Registers the hooks by which earlier areas call later ones. Services, jobs and commands import this module. */
import { ApprovalKind } from "#gen/service/v1/approval_pb.js";
import { findApprovalsOfPushes } from "../../store/approval/push-approval.ts";
import { deliverApproval } from "../agent/agent-approval.ts";
import { findConcernedAgents } from "../agent/agent-environment.ts";
import { haltStepAgents } from "../agent/halt-step-agents.ts";
import { approvalEnded, removeApprovalsOfPushes } from "../approval/approval-end.ts";
import { environmentChanged } from "../environment/environment-change.ts";
import { leasePoliciesChanged } from "../policy/organization-policies.ts";
import { offerHeldWork } from "../runner/held-work.ts";
import { applyStepApproval } from "../workflow/action/action-approval.ts";
import { actionChanged } from "../workflow/execution/action-change.ts";
import { applyForkApproval } from "../workflow/execution/fork-approval.ts";

environmentChanged.set(async (tx, scope, before, after, { hasAgents = true } = {}) => {
  const [applyToAgents, found] = await Promise.all([
    hasAgents ? findConcernedAgents(tx, scope, before, after) : async () => false,
    after ? [] : findApprovalsOfPushes(tx.db, scope, before.id),
  ]);
  return async () => {
    const areChanged = await applyToAgents();
    if (after) return;
    // Ending an agent execution also ended its approvals, so read them again.
    const approvals = areChanged ? await findApprovalsOfPushes(tx.db, scope, before.id) : found;
    await removeApprovalsOfPushes(tx, scope, approvals);
  };
});
approvalEnded.set(async (tx, scope, approval) => {
  const isOfStep = approval.asker?.stepIndex !== undefined;
  // The caller that asked for a push executes it in another call.
  if (approval.kind === ApprovalKind.PUSH && !isOfStep) return;
  if (approval.kind === ApprovalKind.STEP && !isOfStep) return applyForkApproval(tx, scope, approval);
  await (isOfStep ? applyStepApproval(tx, scope, approval) : deliverApproval(tx, scope, approval));
});
actionChanged.set(haltStepAgents);
leasePoliciesChanged.set(offerHeldWork);
