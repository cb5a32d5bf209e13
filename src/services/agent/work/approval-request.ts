import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type RequestApprovalRequest,
  type RequestApprovalResponse,
  RequestApprovalResponseSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { ToolKind } from "#gen/service/v1/approval_pb.js";
import { hasStopped } from "../../../domain/agent/agent-execution.ts";
import {
  approvalContent,
  approvalOutcome,
  isPending,
  type RequestedApproval,
} from "../../../domain/approval/approval.ts";
import { leaseLost } from "../../../domain/error.ts";
import { type ApprovalRuling, ApprovalEffect as Effect } from "../../../domain/policy/approval-policy.ts";
import { rulingOnDescent } from "../../../domain/policy/descent-ruling.ts";
import { requireWorkKind } from "../../../domain/runner/lease.ts";
import { requireNoDeceptiveText } from "../../../domain/text/deceptive-text.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import {
  digestOf,
  type FoundApproval,
  findApprovalsOfToolCall,
  findPendingApprovals,
} from "../../../store/approval/approval.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findAction } from "../../../store/workflow/workflow-action.ts";
import { askApproval } from "../../approval/approval-asking.ts";
import { cancelApproval } from "../../approval/approval-end.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { writeUnderLease } from "../../runner/held-lease.ts";
import { findOrigins } from "../run-origin.ts";

/** Number of approvals that a run may wait for at the same time. */
const MAX_PENDING = 32;

/** Number of approvals that an agent run may ask for with the same tool call id. */
const MAX_OF_TOOL_CALL = 16;

/** A question, as the policy sees it. */
const QUESTION = { kind: ToolKind.QUESTION, tool: "" };

/** Decides by the policy whether a run's agent may do something, or asks people. */
export function requestApproval(
  deps: Pick<ServiceDependencies, "store">,
  req: RequestApprovalRequest,
  ctx: HandlerContext,
) {
  return writeUnderLease(deps, req, ctx, async (tx, scope, lease) => {
    requireWorkKind(lease, WorkKind.AGENT, "an agent run");
    const stored = await findAgentExecution(tx.db, scope, lease.subject_id);
    if (!stored || hasStopped(stored.execution)) throw leaseLost();
    return request(tx, scope, stored, req, checkedRequest(req));
  });
}

/** @throws DomainError TEXT_DECEPTIVE */
function checkedRequest({
  request: asked,
}: RequestApprovalRequest): Exclude<RequestedApproval, { case: "step" | "push" }> {
  if (asked.case === "question") {
    requireNoDeceptiveText(asked.value.message, "question.message");
    requireNoDeceptiveText(asked.value.schemaJson, "question.schemaJson");
    return asked;
  }
  if (asked.case !== "toolCall") throw new Error("a request for an approval asks for nothing");
  const { title, tool, input, locations } = asked.value;
  for (const [name, text] of Object.entries({ title, tool, input }))
    requireNoDeceptiveText(text, `toolCall.${name}`);
  for (const [index, path] of locations.entries())
    requireNoDeceptiveText(path, `toolCall.locations[${index}]`);
  return asked;
}

async function request(
  tx: WriteTransaction,
  scope: Scope,
  stored: StoredAgentExecution,
  { toolCallId, options }: RequestApprovalRequest,
  asked: Exclude<RequestedApproval, { case: "step" | "push" }>,
): Promise<RequestApprovalResponse> {
  const { id: agentExecutionId, metadata } = stored.execution;
  const text = approvalContent(asked);
  const digest = digestOf(text.requestJson);
  const known = await findApprovalsOfToolCall(tx.db, scope, agentExecutionId, toolCallId);
  const same = known.find((each) => each.digest === digest);
  const origins = await findOrigins(tx.db, scope, stored);
  const { kind, tool } = asked.case === "question" ? QUESTION : asked.value;
  const ruling = rulingOnDescent(await findPolicies(tx.db, scope), { kind, tool }, origins);
  // Repeat the earlier answer, unless the policy now denies it.
  if (same && ruling.effect !== Effect.DENY) return asApproval(same);
  for (const each of known.filter(isPending))
    await cancelApproval(tx, scope, each, "the agent asks for something else in its place");
  if (ruling.effect !== Effect.ASK) return asPolicy(ruling);
  if (known.length >= MAX_OF_TOOL_CALL)
    return denied(
      ruling,
      `the agent has asked ${MAX_OF_TOOL_CALL} times under this id, which is the maximum`,
    );
  const pending = await findPendingApprovals(tx.db, scope, { agentExecutionId });
  if (pending.length >= MAX_PENDING)
    return denied(ruling, `the agent run waits for ${MAX_PENDING} approvals, which is the maximum`);
  if (!metadata?.creator) throw new Error(`the agent run ${agentExecutionId} has no creator`);
  const workflowActionId = metadata.workflowActionId ?? "";
  const action = workflowActionId && (await findAction(tx.db, scope, workflowActionId));
  const approval = await askApproval(tx, scope, {
    asked: text,
    asker: {
      agentExecutionId,
      toolCallId,
      workflowActionId,
      workflowExecutionId: action ? (action.metadata?.workflowExecutionId ?? "") : "",
    },
    creator: metadata.creator,
    options,
    deciders: ruling.deciders,
    policyFieldPath: ruling.fieldPath,
    isShared: false,
  });
  return asApproval(approval);
}

function asApproval(approval: FoundApproval): RequestApprovalResponse {
  return create(RequestApprovalResponseSchema, {
    answer: { case: "approval", value: approvalOutcome(approval) },
  });
}

function asPolicy({ effect, reason, fieldPath, decision }: ApprovalRuling): RequestApprovalResponse {
  const value = { allowed: effect === Effect.ALLOW, reason, fieldPath, ...(decision && { decision }) };
  return create(RequestApprovalResponseSchema, { answer: { case: "policy", value } });
}

function denied({ fieldPath }: ApprovalRuling, reason: string): RequestApprovalResponse {
  const value = { allowed: false, reason, fieldPath };
  return create(RequestApprovalResponseSchema, { answer: { case: "policy", value } });
}
