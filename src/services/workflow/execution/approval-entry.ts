import { durationMs } from "@bufbuild/protobuf/wkt";
import type {
  WorkflowExecution,
  WorkflowExecutionAction,
  WorkflowStep_Approval,
} from "#gen/service/v1/workflow_pb.js";
import { isPending } from "../../../domain/approval/approval.ts";
import {
  approvalAt,
  askingAction,
  decidedAction,
  decidersOfStep,
  isAsking,
  nextStepOf,
  stepRequest,
} from "../../../domain/workflow/execution/approval-step.ts";
import { stepsOf } from "../../../domain/workflow/execution/workflow-action.ts";
import { stepErrors } from "../../../domain/workflow/execution/workflow-step.ts";
import { digestOf, type FoundApproval, findApprovalOfStep } from "../../../store/approval/approval.ts";
import { findPushApprovalsOfStep } from "../../../store/approval/push-approval.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { updateAction } from "../../../store/workflow/workflow-action.ts";
import { askApproval } from "../../approval/approval-asking.ts";

/** The state of an action before its next step. */
export interface EnteredStep<T> {
  /**
   * `ready`: the next step is for a runner. `waiting`: people must decide it. `refused`: people denied it, or did not
   * decide in time. `done`: no step remains.
   */
  readonly kind: "ready" | "waiting" | "refused" | "done";
  readonly action: T;
}

/**
 * Passes the approved steps that a pending action has reached, and asks people about the first undecided one. Does
 * not repeat a request of an earlier attempt.
 *
 * @param execution the execution with its plan
 */
export async function enterNextStep<T extends WorkflowExecutionAction>(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  before: T,
): Promise<EnteredStep<WorkflowExecutionAction & Pick<T, "id">>> {
  const steps = stepsOf(execution, before);
  let action: WorkflowExecutionAction = before;
  const entered = async <K>(kind: K) => {
    if (action !== before) await updateAction(tx, scope, before, action);
    return { kind, action: Object.assign(action, { id: before.id }) };
  };
  for (;;) {
    const index = nextStepOf(action);
    if (index >= steps.length) return entered("done");
    const step = approvalAt(steps, index);
    if (!step) return entered(await stateOfPush(tx, scope, action, index));
    const request = stepRequest(before, index, step.message);
    const approval =
      (await findApprovalOfStep(tx.db, scope, before.id, index)) ??
      (await ask(tx, scope, { execution, action: before, index, step, request }));
    action = askingAction(action, steps.length, tx.now);
    if (isPending(approval)) return entered("waiting");
    action = decidedAction(action, approval, digestOf(request.requestJson), tx.now);
    if (stepErrors(action.status?.stepStatuses ?? []).length > 0) return entered("refused");
  }
}

/** Returns the state of a step for a runner: a pullRequest step may wait for the approval of its push. */
async function stateOfPush(
  tx: WriteTransaction,
  scope: Scope,
  action: WorkflowExecutionAction,
  index: number,
): Promise<"ready" | "waiting" | "refused"> {
  if (stepErrors(action.status?.stepStatuses ?? []).length > 0) return "refused";
  if (!isAsking(action)) return "ready";
  const [newest] = await findPushApprovalsOfStep(tx.db, scope, action.id, index);
  return newest && isPending(newest) ? "waiting" : "ready";
}

interface StepQuestion {
  readonly execution: WorkflowExecution;
  readonly action: WorkflowExecutionAction;
  readonly index: number;
  readonly step: WorkflowStep_Approval;
  readonly request: ReturnType<typeof stepRequest>;
}

async function ask(
  tx: WriteTransaction,
  scope: Scope,
  { execution, action, index, step, request }: StepQuestion,
): Promise<FoundApproval> {
  const { creator, executor } = execution.metadata ?? {};
  if (!creator) throw new Error(`the execution ${execution.id} has no creator`);
  return askApproval(tx, scope, {
    asked: request,
    asker: {
      agentExecutionId: "",
      toolCallId: "",
      workflowExecutionId: execution.id,
      workflowActionId: action.id,
      stepIndex: index,
    },
    creator,
    executor,
    ...decidersOfStep(await findPolicies(tx.db, scope), step),
    isShared: true,
    lifetimeMs: step.timeout && durationMs(step.timeout),
  });
}
