import {
  WorkflowExecutionConclusion as Conclusion,
  WorkflowTrigger_PullRequestEvent as Event,
  WorkflowTrigger_OverlapPolicy as Overlap,
  WorkflowExecutionPhase as Phase,
  TriggerVerdict as Verdict,
  type Workflow,
  type WorkflowExecution,
  type WorkflowExecutionTrigger,
  type WorkflowTrigger,
  type WorkflowTriggerContext,
} from "#gen/service/v1/workflow_pb.js";
import type { Tone } from "../../parts/State.tsx";

const CONCLUSIONS: Readonly<Record<Conclusion, readonly [Tone, string]>> = {
  [Conclusion.UNSPECIFIED]: ["waiting", "Unknown"],
  [Conclusion.SUCCEEDED]: ["done", "Succeeded"],
  [Conclusion.PARTIALLY_FAILED]: ["failed", "Partially failed"],
  [Conclusion.FAILED]: ["failed", "Failed"],
  [Conclusion.STOPPED]: ["stopped", "Stopped"],
};

/** Returns the tone and word for the state of an execution. */
export function executionState({ status }: WorkflowExecution): readonly [Tone, string] {
  switch (status?.phase) {
    case Phase.PENDING:
      return ["waiting", "Pending"];
    case Phase.RUNNING:
      return ["running", "Running"];
    case Phase.STOPPING:
      return ["running", "Stopping"];
    case Phase.DELETING:
    case Phase.DELETED:
      return ["stopped", "Deleted"];
    default:
      return CONCLUSIONS[status?.conclusion ?? Conclusion.UNSPECIFIED];
  }
}

/** Returns whether an execution has ended. */
export const hasEnded = ({ status }: WorkflowExecution): boolean =>
  status?.phase === Phase.COMPLETED || status?.phase === Phase.STOPPED;

/** Returns the tone and word for whether a workflow is enabled. */
export function workflowState({ spec }: Workflow): readonly [Tone, string] {
  if (spec?.deleting) return ["stopped", "Being deleted"];
  return spec?.disabled ? ["stopped", "Disabled"] : ["done", "Enabled"];
}

/** The kinds of pull request events with their labels. */
export const EVENTS: readonly (readonly [Event, string])[] = [
  [Event.OPENED, "opened"],
  [Event.UPDATED, "updated"],
  [Event.READY_FOR_REVIEW, "ready for review"],
  [Event.REVIEW_REQUESTED, "review requested"],
  [Event.APPROVED, "approved"],
  [Event.MERGED, "merged"],
  [Event.CLOSED, "closed"],
];

/** The overlap policies (an instant comes while an execution runs) with their labels. */
export const OVERLAPS: readonly (readonly [Overlap, string])[] = [
  [Overlap.ALLOW, "Start another alongside it"],
  [Overlap.SKIP, "Start none"],
  [Overlap.CANCEL_PREVIOUS, "Cancel it, then start another"],
];

/** Returns a description of a trigger in one line. */
export function triggerText({ trigger }: WorkflowTrigger): string {
  if (trigger.case === "manual") return "Manual or webhook";
  if (trigger.case === "time") {
    return `At ${trigger.value.cronExpression || "…"} (${trigger.value.timeZone || "UTC"})`;
  }
  if (trigger.case === "pullRequest") {
    const kinds = EVENTS.filter(([event]) => trigger.value.events.includes(event)).map(([, word]) => word);
    return `Pull request ${kinds.length === 0 ? "(all events)" : kinds.join(", ")}`;
  }
  return "No trigger";
}

/** Returns what started an execution, in one or two words. */
export function startedBy(trigger: WorkflowExecutionTrigger | undefined): string {
  if (trigger?.trigger.case === "time") return "on schedule";
  if (trigger?.trigger.case === "pullRequest") return "by a pull request";
  return "manually or by webhook";
}

/** Returns where a trigger's executions run, in one line. */
export function contextText(context: WorkflowTriggerContext | undefined): string {
  const chosen = context?.context;
  const count = (number: number, one: string, many: string) =>
    `${number.toLocaleString()} ${number === 1 ? one : many}`;
  if (chosen?.case === "projects") return count(chosen.value.projectIds.length, "project", "projects");
  if (chosen?.case === "agent") return "an agent without code";
  if (chosen?.case === "fromTrigger") return "the repository of the event";
  if (chosen?.case === "repositories") {
    const { repositorySelector } = chosen.value;
    if (repositorySelector.case === "repositoryUrls") {
      const { repoUrls } = repositorySelector.value;
      return repoUrls.length === 1
        ? (repoUrls[0] ?? "")
        : count(repoUrls.length, "repository", "repositories");
    }
    if (repositorySelector.case === "repoSelector") {
      return `a search at ${repositorySelector.value.scmHost}`;
    }
  }
  return "nowhere yet";
}

/** The tone and word of each verdict of the ledger. */
export const VERDICTS: Readonly<Record<Verdict, readonly [Tone, string]>> = {
  [Verdict.UNSPECIFIED]: ["waiting", "Unknown"],
  [Verdict.STARTED]: ["done", "Started"],
  [Verdict.DUPLICATE]: ["stopped", "Duplicate"],
  [Verdict.DISABLED]: ["stopped", "Disabled"],
  [Verdict.NO_MATCH]: ["stopped", "No trigger matches"],
  [Verdict.BAD_SIGNATURE]: ["failed", "Bad signature"],
  [Verdict.MISSED]: ["failed", "Missed"],
  [Verdict.OVERLAP]: ["stopped", "Previous one still running"],
  [Verdict.REFUSED]: ["failed", "Refused"],
};
