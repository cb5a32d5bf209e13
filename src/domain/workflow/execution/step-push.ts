import { create } from "@bufbuild/protobuf";
import type { FinishWorkRequest_StepPush as StepPush } from "#gen/runner/v1/work_service_pb.js";
import { ApprovalPushSchema } from "#gen/service/v1/approval_pb.js";
import type { WorkflowStep, WorkflowStep_PullRequest } from "#gen/service/v1/workflow_pb.js";
import { type AskedText, askedText } from "../../approval/approval.ts";

/**
 * Returns what people approve of a pullRequest step: the push, and the pull request that is opened with it. The service
 * asks for it, and the runner compares what it is about to push: both by this text.
 *
 * @param step parameters substituted
 * @param push what the runner knows of it
 */
export function stepPushRequest(
  { branch, title, description, draft }: Omit<WorkflowStep_PullRequest, "$typeName" | "$unknown">,
  { remote, commit, base }: Pick<StepPush, "remote" | "commit" | "base">,
): AskedText {
  const pullRequest = base === "" ? {} : { pullRequest: { title, body: description, base, draft } };
  // Of the branch only commits of the same workflow are replaced.
  const value = create(ApprovalPushSchema, { remote, branch, commit, force: false, ...pullRequest });
  return askedText({ case: "push", value });
}

/** Returns the pullRequest step with an index; undefined where it is none. */
export function pullRequestAt(
  steps: readonly WorkflowStep[],
  index: number,
): WorkflowStep_PullRequest | undefined {
  const step = steps[index]?.step;
  return step?.case === "pullRequest" ? step.value : undefined;
}
