import { join } from "node:path";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ActionWork } from "#gen/runner/v1/work_pb.js";
import { ReportProgressRequest_StepProgress_State as State } from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { untilAgentsStopped } from "../agent/step-agent.ts";
import { withinTime } from "../process/deadline.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { failureReportOf } from "../protocol/failure-report.ts";
import type { Progress } from "../protocol/lease.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { environmentOf } from "./action-facts.ts";
import { runStep, type StepResult, type StepRun } from "./action-step.ts";
import { namedFilesOf } from "./environment-work.ts";
import { prepareWorkspace } from "./preparation.ts";
import { StepLog } from "./step-log.ts";
import { environmentWorkspace } from "./work-dirs.ts";
import { removeWorkspace } from "./workspace.ts";

/**
 * Carries an action out: prepares its environment, runs the steps in their
 * order, and lets the environment go, whatever came of them.
 *
 * @throws WorkFailure why it failed; the step that it failed in has been reported
 * @throws the reason of the lease's signal when that ended it
 */
export async function executeAction(assignment: Assignment, action: ActionWork): Promise<void> {
  const { tools, lease } = assignment;
  const workspace = environmentWorkspace(tools, action.environment?.id ?? "");
  const timeMs = action.maxTime && durationMs(action.maxTime);
  const late = new WorkFailure("max_time_exceeded", "the action took longer than it may");
  try {
    await withinTime(timeMs, lease.signal, late, async (signal) => {
      const checkouts = await prepareWorkspace(assignment, {
        workspace,
        initializer: action.environment?.spec?.content?.initializer,
        prebuildId: action.prebuildId,
        namedFiles: action.environment ? namedFilesOf(action.environment) : [],
        signal,
      });
      const folder = join(workspace.tree, checkouts[0]?.location ?? "");
      const environment = await environmentOf(assignment, action, workspace);
      await runSteps({ assignment, action, workspace, checkouts, folder, environment, signal });
    });
  } finally {
    await removeWorkspace(tools.programs, workspace).catch((error) =>
      tools.log.warn(
        { folder: workspace.folder, problem: error.message },
        "a workspace could not be removed",
      ),
    );
  }
}

type StepProgress = NonNullable<Progress["steps"]>[number];

async function runSteps(run: Omit<StepRun, "log" | "stepIndex">): Promise<void> {
  const { assignment, action, signal } = run;
  const { lease } = assignment;
  let environment: Progress["environment"] = { phase: EnvironmentPhase.RUNNING };
  let ended: StepProgress[] = [];
  let agents: readonly string[] = [];
  for (const [stepIndex, step] of action.steps.entries()) {
    signal.throwIfAborted();
    const began = { stepIndex, state: State.RUNNING };
    await lease.report({ ...(environment && { environment }), steps: [...ended, began] });
    environment = undefined;
    ended = [];
    const log = new StepLog(({ offset, data }) =>
      lease.report({ logs: [{ stepIndex, offset: BigInt(offset), data }] }),
    );
    try {
      const result = await runStep({ ...run, stepIndex, log }, step);
      await log.close();
      assignment.warnings.push(...(result.warnings ?? []));
      ended.push(doneStep(stepIndex, result));
      agents = result.agentExecutionIds ?? [];
    } catch (error) {
      // What it printed to its end is worth telling also when it was stopped.
      await log.close().catch(() => undefined);
      lease.signal.throwIfAborted();
      const failure = failureReportOf(error);
      await lease.report({ steps: [{ stepIndex, state: State.FAILED, failure }] });
      throw error;
    }
    // Whether the values of a report are accepted decides whether the next step may begin.
    if (step.step.case === "report" || agents.length > 0) await lease.report({ steps: ended.splice(0) });
    // What follows works on the same files.
    await untilAgentsStopped(run, agents);
  }
  if (ended.length > 0) await lease.report({ steps: ended });
  lease.signal.throwIfAborted();
}

function doneStep(stepIndex: number, { pullRequestUrl, outputs }: StepResult): StepProgress {
  return {
    stepIndex,
    state: State.DONE,
    ...(pullRequestUrl !== undefined && { pullRequestUrl }),
    ...(outputs && { outputs: { ...outputs } }),
  };
}
