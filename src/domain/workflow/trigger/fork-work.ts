import { create } from "@bufbuild/protobuf";
import { PullRequest_Origin as Origin, type PullRequest } from "#gen/service/v1/agent_pb.js";
import {
  type ApprovalDeciders,
  ApprovalStepSchema,
  ApprovalDeciders_Who as Who,
} from "#gen/service/v1/approval_pb.js";
import {
  ForkApproval as Approval,
  ForkEgress as Egress,
  ForkWorkSchema,
} from "#gen/service/v1/fork_work_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type {
  WorkflowExecution,
  WorkflowExecutionTrigger,
  WorkflowTrigger,
} from "#gen/service/v1/workflow_pb.js";
import { type ApprovalContent, approvalContent } from "../../approval/approval.ts";
import { phaseUnsuitable } from "../../error.ts";
import { deciders } from "../../policy/approval-deciders.ts";
import { withoutDeceptiveText } from "../../text/deceptive-text.ts";
import { workflowError } from "../execution/workflow-error.ts";

/** Returns whether a pull request comes from a fork; true also if its origin is unknown. */
export function isFromFork({ origin }: PullRequest): boolean {
  return origin !== Origin.SAME_REPOSITORY;
}

/** Returns whether people must approve an execution before anything of it runs. */
export function needsForkApproval({ spec }: WorkflowExecution): boolean {
  return spec?.trigger?.forkWork?.approval === Approval.REQUIRED;
}

/** Returns the warnings about a trigger that a pull request from a fork fired. */
export function forkWarnings({ trigger, forkWork }: WorkflowExecutionTrigger): readonly WorkflowError[] {
  if (trigger.case !== "pullRequest" || !isFromFork(trigger.value)) return [];
  if (forkWork?.approval === Approval.NOT_REQUIRED) return [];
  if (forkWork) {
    return [
      workflowError(
        "fork_approval_asked",
        "a pull request from a fork, or one whose origin is not known, began it: nothing of it runs before people approve it",
      ),
    ];
  }
  return [
    workflowError(
      "fork_not_asked",
      "a pull request from a fork, or one whose origin is not known, began it, and nobody was asked: the trigger is of an earlier release. Write the workflow's triggers again to have people asked first",
    ),
  ];
}

/**
 * Returns the deciders for an execution that a pull request from a fork started. By default the starter may decide, but
 * here the starter is the subject that delivered or redelivered the event. It may decide only if it is the workflow's
 * creator or executor, as which deliveries of hosts run. Otherwise everybody who may start the workflow could approve.
 *
 * @param chosen deciders as for approval steps; undefined for the default
 * @param owners creator and executor of the workflow
 */
export function decidersOfFork(
  chosen: ApprovalDeciders | undefined,
  { metadata }: WorkflowExecution,
  owners: readonly (Subject | undefined)[],
): ApprovalDeciders | undefined {
  const starter = metadata?.creator;
  const isOwner = owners.some((each) => each?.id === starter?.id && each?.principal === starter?.principal);
  const asked = deciders(chosen);
  if (isOwner || asked.who !== Who.STARTER_AND_ADMINISTRATORS) return chosen;
  return { ...asked, who: Who.ADMINISTRATORS };
}

/** Returns the approval request for an execution that a pull request from a fork started. */
export function forkRequest({ id, spec }: WorkflowExecution): ApprovalContent {
  const trigger = spec?.trigger?.trigger;
  const pullRequest = trigger?.case === "pullRequest" ? trigger.value : undefined;
  const { id: number = "", title = "", author = "", headSha = "", repository } = pullRequest ?? {};
  const from = pullRequest?.origin === Origin.FORK ? "from a fork" : "of unknown origin";
  const message = [
    `Run the workflow for the pull request ${number} ${from}, at the commit ${headSha}`,
    repository?.cloneUrl ?? "",
    [title, author && `by ${author}`].filter((text) => text !== "").join(", "),
  ].join("\n");
  return approvalContent({
    case: "step",
    value: create(ApprovalStepSchema, { message: withoutDeceptiveText(message), workflowExecutionId: id }),
  });
}

/**
 * Returns triggers in the form in which they are stored: each pull-request trigger has its settings for forks filled in.
 *
 * @param isKnown false while servers run that would lose the settings; they are left out then
 * @throws DomainError PHASE_UNSUITABLE for a trigger that sets them itself while they are not known
 */
export function withForkWork(triggers: readonly WorkflowTrigger[], isKnown: boolean): WorkflowTrigger[] {
  return triggers.map((written) => {
    const { trigger } = written;
    if (trigger.case !== "pullRequest") return written;
    const { approval = 0, egress = 0 } = trigger.value.forkWork ?? {};
    if (!isKnown) {
      if (approval === 0 && egress === 0) return written;
      const message = "triggers can have rules for forks once every server runs this release";
      throw phaseUnsuitable("installation", "UPGRADING", message);
    }
    const forkWork = create(ForkWorkSchema, {
      approval: approval || Approval.REQUIRED,
      egress: egress || Egress.SOURCES,
    });
    return { ...written, trigger: { case: "pullRequest", value: { ...trigger.value, forkWork } } };
  });
}
