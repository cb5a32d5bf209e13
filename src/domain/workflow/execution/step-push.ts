import { create } from "@bufbuild/protobuf";
import type { FinishWorkRequest_StepPush as StepPush } from "#gen/runner/v1/work_service_pb.js";
import { ApprovalPushSchema } from "#gen/service/v1/approval_pb.js";
import type { WorkflowStep, WorkflowStep_PullRequest } from "#gen/service/v1/workflow_pb.js";
import { type ApprovalContent, approvalContent } from "../../approval/approval.ts";

/**
 * Returns the approval request of a pullRequest step: the push, and the pull request that is opened with it. The service
 * stores this text when it asks, and the runner compares it with the text for what it is about to push.
 *
 * @param step the step with parameters inserted
 * @param push the facts that the runner knows about the push
 */
export function stepPushRequest(
  { branch, title, description, draft }: Omit<WorkflowStep_PullRequest, "$typeName" | "$unknown">,
  { remote, commit, base }: Pick<StepPush, "remote" | "commit" | "base">,
): ApprovalContent {
  const pullRequest = base === "" ? {} : { pullRequest: { title, body: description, base, draft } };
  // Not a forced push: on the branch, only commits of the same workflow are replaced.
  const value = create(ApprovalPushSchema, { remote, branch, commit, force: false, ...pullRequest });
  return approvalContent({ case: "push", value });
}

/** Returns the pullRequest step at an index; undefined if there is no pullRequest step there. */
export function pullRequestAt(
  steps: readonly WorkflowStep[],
  index: number,
): WorkflowStep_PullRequest | undefined {
  const step = steps[index]?.step;
  return step?.case === "pullRequest" ? step.value : undefined;
}
