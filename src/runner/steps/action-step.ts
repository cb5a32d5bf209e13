import type { ActionWork } from "#gen/runner/v1/work_pb.js";
import type { WorkflowStep } from "#gen/service/v1/workflow_pb.js";
import { runAgent } from "../agent/step-agent.ts";
import type { Checkout } from "../git/git-checkout.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { StepLog } from "./step-log.ts";
import { openPullRequest } from "./step-pull-request.ts";
import { collectOutputs } from "./step-report.ts";
import { runTask } from "./step-task.ts";
import type { Workspace } from "./workspace.ts";

/** A step that runs, and where. */
export interface StepRun {
  readonly assignment: Assignment;
  readonly action: ActionWork;
  /** Its place in the action, from 0. */
  readonly stepIndex: number;
  readonly workspace: Workspace;
  /** What was checked out in it; the steps work in the first one. */
  readonly checkouts: readonly Checkout[];
  /** The folder of the first repository, or of the empty tree. */
  readonly folder: string;
  /** All of the environment of its commands. */
  readonly environment: Readonly<Record<string, string>>;
  /** Gets what its commands print. */
  readonly log: StepLog;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** What a step leaves besides its being done. */
export interface StepResult {
  readonly pullRequestUrl?: string;
  /** What was printed for each output, by its key. */
  readonly outputs?: Readonly<Record<string, Uint8Array>>;
  /** Its agents, which the service stops once it is told that the step is done. */
  readonly agentExecutionIds?: readonly string[];
  /** What people should know although it is done. */
  readonly warnings?: readonly WorkFailure[];
}

/**
 * Runs one step to its end.
 *
 * @throws WorkFailure why it failed
 * @throws the reason of its signal when that ended it
 */
export function runStep(run: StepRun, { step }: WorkflowStep): Promise<StepResult> {
  switch (step.case) {
    case "task":
      return runTask(run, step.value);
    case "pullRequest":
      return openPullRequest(run, step.value);
    case "report":
      return collectOutputs(run, step.value);
    case "agent":
      return runAgent(run);
    default:
      throw new WorkFailure("step_unknown", "the step is of a kind that this runner does not know");
  }
}
