import { clone } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  ReportProgressRequest_StepProgress as StepProgress,
  FinishWorkRequest_StepPush as StepPush,
} from "#gen/runner/v1/work_service_pb.js";
import { ApprovalSchema, ApprovalState as State } from "#gen/service/v1/approval_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { isPending } from "../../../domain/approval/approval.ts";
import { decidePush, pushRulesOf } from "../../../domain/approval/push-rules.ts";
import { requireMadeFrom } from "../../../domain/environment/environment-push.ts";
import { pathOfPushRule, pushDeciders } from "../../../domain/policy/push-policy.ts";
import { nextStepOf } from "../../../domain/workflow/execution/approval-step.ts";
import { pullRequestAt, stepPushRequest } from "../../../domain/workflow/execution/step-push.ts";
import { stepsOf } from "../../../domain/workflow/execution/workflow-action.ts";
import { digestOf } from "../../../store/approval/approval.ts";
import { findPushApprovalsOfStep, updateCarriedOut } from "../../../store/approval/push-approval.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import type { FoundAction } from "../../../store/workflow/workflow-action.ts";
import { askApproval } from "../../approval/approval-asking.ts";
import { cancelApproval } from "../../approval/approval-end.ts";

/** A push that a pullRequest step is about to make. */
export interface StepPushRequest {
  /** The execution with its plan. */
  readonly execution: WorkflowExecution;
  readonly action: FoundAction;
  readonly environment: Environment | undefined;
  readonly push: StepPush;
}

/**
 * Asks people to approve the push of a pullRequest step. Does nothing if the same push was asked for before or the
 * current rules no longer require an approval; the runner gets these rules with its next lease.
 *
 * @throws DomainError VALUE_UNUSABLE for a remote that the environment was not made from
 */
export async function askStepPush(
  tx: WriteTransaction,
  scope: Scope,
  { execution, action, environment, push }: StepPushRequest,
): Promise<void> {
  const stepIndex = nextStepOf(action);
  const step = pullRequestAt(stepsOf(execution, action), stepIndex);
  const { creator, executor } = execution.metadata ?? {};
  if (!step || !creator) throw new Error(`the action ${action.id} has no step to push, or nobody started it`);
  requireMadeFrom(environment?.spec?.content?.initializer, push.remote, "push.remote");
  const { agentPolicy } = (await findPolicies(tx.db, scope)).effective;
  // The runner never pushes to a default branch, and on other branches it replaces only commits of the same workflow.
  const { decision, rule } = decidePush(pushRulesOf(agentPolicy), {
    branch: step.branch,
    defaultBranch: undefined,
    isForced: false,
  });
  if (decision !== "ask" || rule === undefined) return;
  const asked = stepPushRequest(step, push);
  const digest = digestOf(asked.requestJson);
  const [newest] = await findPushApprovalsOfStep(tx.db, scope, action.id, stepIndex);
  if (newest?.digest === digest && newest.state !== State.CANCELLED) return;
  if (newest && isPending(newest))
    await cancelApproval(tx, scope, newest, "another push of the step is asked for in its place");
  await askApproval(tx, scope, {
    asked,
    asker: {
      agentExecutionId: "",
      toolCallId: "",
      workflowExecutionId: execution.id,
      workflowActionId: action.id,
      stepIndex,
    },
    creator,
    executor,
    deciders: pushDeciders(agentPolicy?.pushRules?.rules[rule]?.deciders),
    policyFieldPath: pathOfPushRule(rule),
    isShared: true,
  });
}

/** Returns the digest of the last push that people approved for the next step of an action; empty for none. */
export async function findApprovedPushDigest(
  tx: WriteTransaction,
  scope: Scope,
  action: FoundAction,
): Promise<string> {
  const [newest] = await findPushApprovalsOfStep(tx.db, scope, action.id, nextStepOf(action));
  return newest?.state === State.APPROVED ? newest.digest : "";
}

/** Marks approved pushes as executed by their steps. A repeated report changes nothing. */
export async function carryOutStepPushes(
  tx: WriteTransaction,
  scope: Scope,
  { id }: FoundAction,
  reported: readonly StepProgress[],
): Promise<void> {
  for (const { stepIndex, approvedPushDigest } of reported.filter((each) => each.approvedPushDigest !== "")) {
    const found = await findPushApprovalsOfStep(tx.db, scope, id, stepIndex);
    const before = found.find(({ digest }) => digest === approvedPushDigest);
    if (before?.state !== State.APPROVED || before.carriedOutAt) continue;
    const after = clone(ApprovalSchema, before);
    after.carriedOutAt = timestampFromMs(tx.now);
    await updateCarriedOut(tx, scope, before, after);
  }
}
