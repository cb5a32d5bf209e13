/** Registers the hooks by which earlier areas call later ones. Services, jobs and commands import this module. */
import { ApprovalKind } from "#gen/service/v1/approval_pb.js";
import { deliverApproval } from "../agent/agent-approval.ts";
import { syncAgentExecutions } from "../agent/agent-environment.ts";
import { haltStepAgents } from "../agent/halt-step-agents.ts";
import { approvalEnded } from "../approval/approval-end.ts";
import { environmentChanged } from "../environment/environment-change.ts";
import { applyStepApproval } from "../workflow/action/action-approval.ts";
import { actionChanged } from "../workflow/execution/action-change.ts";

environmentChanged.set(syncAgentExecutions);
approvalEnded.set((tx, scope, approval) =>
  approval.kind === ApprovalKind.STEP
    ? applyStepApproval(tx, scope, approval)
    : deliverApproval(tx, scope, approval),
);
actionChanged.set(haltStepAgents);
