import { create } from "@bufbuild/protobuf";
import { type Approval, ApprovalState as State } from "#gen/service/v1/approval_pb.js";
import { type WorkflowExecution, WorkflowStep_ApprovalSchema } from "#gen/service/v1/workflow_pb.js";
import { decidersOfStep } from "../../../domain/workflow/execution/approval-step.ts";
import { workflowError } from "../../../domain/workflow/execution/workflow-error.ts";
import { hasEnded, isCancelled } from "../../../domain/workflow/execution/workflow-execution.ts";
import { searchOf } from "../../../domain/workflow/execution/workflow-expansion.ts";
import { decidersOfFork, forkRequest } from "../../../domain/workflow/trigger/fork-work.ts";
import { digestOf } from "../../../store/approval/approval.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";
import { findWholeExecution, setExpansion } from "../../../store/workflow/workflow-execution.ts";
import { askApproval } from "../../approval/approval-asking.ts";
import { expandExecution, failUnexpandedExecution } from "./execution-expand.ts";

/** Asks people whether an execution may begin. It has no actions until they approve. */
export async function askForkApproval(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<void> {
  const { creator, executor } = execution.metadata ?? {};
  if (!creator) throw new Error(`the execution ${execution.id} has no creator`);
  const workflow = await findWorkflow(tx.db, scope, execution.metadata?.workflowId ?? "");
  const step = decidersOfStep(await findPolicies(tx.db, scope), create(WorkflowStep_ApprovalSchema));
  await setExpansion(tx, scope, execution.id, "asking");
  await askApproval(tx, scope, {
    asked: forkRequest(execution),
    asker: {
      agentExecutionId: "",
      toolCallId: "",
      workflowExecutionId: execution.id,
      workflowActionId: "",
    },
    creator,
    executor,
    policyFieldPath: step.policyFieldPath,
    deciders: decidersOfFork(step.deciders, execution, [workflow?.metadata?.creator, executor]),
    isShared: true,
  });
}

/** Begins an execution that people have approved; otherwise fails it. */
export async function applyForkApproval(
  tx: WriteTransaction,
  scope: Scope,
  { id, asker, state, reason, digest }: Approval,
): Promise<void> {
  const executionId = asker?.workflowExecutionId ?? "";
  const stored = await findWholeExecution(tx.db, scope, executionId);
  if (!stored || stored.expanded || hasEnded(stored.execution) || isCancelled(stored.execution)) return;
  const { execution } = stored;
  const meta = { approval_id: id };
  const fail = (why: "approval_denied" | "approval_expired" | "approval_changed", message: string) =>
    failUnexpandedExecution(tx, scope, executionId, workflowError(why, message, meta));
  if (state === State.EXPIRED) return fail("approval_expired", "nobody approved the execution in time");
  if (state !== State.APPROVED)
    return fail("approval_denied", `the execution was not approved${reason && `: ${reason}`}`);
  if (digest !== digestOf(forkRequest(execution).requestJson))
    return fail("approval_changed", "what was approved is not what the execution does");
  await setExpansion(tx, scope, executionId, "none");
  // A job creates the actions of a search.
  if (!searchOf(execution.spec?.trigger?.context)) await expandExecution(tx, scope, execution);
}
