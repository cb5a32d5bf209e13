import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, toJsonString } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ActionWork } from "#gen/runner/v1/work_pb.js";
import { ReportProgressRequest_StepProgress_State as State } from "#gen/runner/v1/work_service_pb.js";
import { PullRequestSchema } from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ListWorkflowExecutionOutputsResponseSchema } from "#gen/service/v1/workflow_service_pb.js";
import { untilAgentsStopped } from "../agent/step-agent.ts";
import { resolveCommitAuthor } from "../git/commit-author.ts";
import { commandEnvironment } from "../process/command.ts";
import { withTimeLimit } from "../process/deadline.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { failureReportOf } from "../protocol/failure-report.ts";
import type { Progress } from "../protocol/lease.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { runStep, type StepResult, type StepRun } from "./action-step.ts";
import { namedFilesOf } from "./environment-work.ts";
import { prepareWorkspace } from "./preparation.ts";
import { StepLog } from "./step-log.ts";
import { environmentWorkspace } from "./work-dirs.ts";
import { removeWorkspace, type Workspace } from "./workspace.ts";

/**
 * Executes an action: prepares its environment, runs the steps in their order,
 * and releases the environment in any case.
 *
 * @throws WorkFailure the failure; the step that it occurred in has been reported
 * @throws the reason of the lease's signal when that ended it
 */
export async function executeAction(assignment: Assignment, action: ActionWork): Promise<void> {
  const { tools, lease } = assignment;
  const workspace = environmentWorkspace(tools, action.environment?.id ?? "");
  const timeMs = action.maxTime && durationMs(action.maxTime);
  const timeoutError = new WorkFailure("max_time_exceeded", "the action took longer than it may");
  try {
    await withTimeLimit(timeMs, lease.signal, timeoutError, async (signal) => {
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
      ended.push(toStepProgress(stepIndex, result));
      agents = result.agentExecutionIds ?? [];
    } catch (error) {
      // The step's last output is reported also when it was stopped.
      await log.close().catch(() => undefined);
      lease.signal.throwIfAborted();
      const failure = failureReportOf(error);
      await lease.report({ steps: [{ stepIndex, state: State.FAILED, failure }] });
      throw error;
    }
    // Whether the values of a report are accepted decides whether the next step may begin.
    if (step.step.case === "report" || agents.length > 0) await lease.report({ steps: ended.splice(0) });
    // The next step works on the same files.
    await untilAgentsStopped(run, agents);
  }
  if (ended.length > 0) await lease.report({ steps: ended });
  lease.signal.throwIfAborted();
}

function toStepProgress(stepIndex: number, { pullRequestUrl, outputs }: StepResult): StepProgress {
  return {
    stepIndex,
    state: State.DONE,
    ...(pullRequestUrl !== undefined && { pullRequestUrl }),
    ...(outputs && { outputs: { ...outputs } }),
  };
}

/**
 * Returns the complete environment of an action's commands: the parameters, and
 * then variables that no parameter can override. Long values are in files beside
 * the tree.
 */
export async function environmentOf(
  { tools, work }: Assignment,
  action: ActionWork,
  { folder, home }: Workspace,
): Promise<Record<string, string>> {
  const { name, email } = resolveCommitAuthor(action.environment, tools.serverUrl);
  const files: Record<string, string> = {};
  const json = { alwaysEmitImplicit: true };
  if (action.report) {
    files.CHARTROOM_OUTPUTS = join(folder, "outputs.json");
    const { outputs } = action;
    const message = create(ListWorkflowExecutionOutputsResponseSchema, { outputs });
    const text = toJsonString(ListWorkflowExecutionOutputsResponseSchema, message, json);
    await writeFile(files.CHARTROOM_OUTPUTS, text);
  }
  if (action.pullRequest) {
    files.CHARTROOM_PULL_REQUEST = join(folder, "pull-request.json");
    await writeFile(files.CHARTROOM_PULL_REQUEST, toJsonString(PullRequestSchema, action.pullRequest, json));
  }
  return commandEnvironment(tools.programs, home, {
    ...action.variables,
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
    CHARTROOM_URL: tools.serverUrl,
    CHARTROOM_ENVIRONMENT_ID: action.environment?.id ?? "",
    CHARTROOM_ENVIRONMENT_TOKEN: work.environmentToken,
    CHARTROOM_WORKFLOW_ID: action.workflowId,
    CHARTROOM_EXECUTION_ID: action.workflowExecutionId,
    CHARTROOM_ACTION_ID: action.actionId,
    ...files,
  });
}
