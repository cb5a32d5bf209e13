import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create, toJsonString } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ActionWork } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  ReportProgressRequest_StepProgress_State as State,
} from "#gen/runner/v1/work_service_pb.js";
import { PullRequestSchema } from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { WorkflowStep } from "#gen/service/v1/workflow_pb.js";
import { ListWorkflowExecutionOutputsResponseSchema } from "#gen/service/v1/workflow_service_pb.js";
import { stepTraceparent } from "../../domain/trace/trace-context.ts";
import { untilAgentsStopped } from "../agent/step-agent.ts";
import { openNetwork } from "../egress/open-network.ts";
import { resolveCommitAuthor } from "../git/commit-author.ts";
import type { Checkout } from "../git/git-checkout.ts";
import { commandEnvironment } from "../process/command.ts";
import { withTimeLimit } from "../process/deadline.ts";
import { mountSecrets, unmountSecrets } from "../process/work-secrets.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { failureReportOf } from "../protocol/failure-report.ts";
import type { Lease } from "../protocol/lease.ts";
import { requireSupportedPolicies } from "../protocol/supported-policies.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { Progress, WorkEnd } from "../protocol/work-reports.ts";
import { runStep, type StepPush, type StepResult, type StepRun } from "./action-step.ts";
import { imageOfEnvironment } from "./environment-image.ts";
import { namedFilesOf } from "./environment-work.ts";
import { prepareWorkspace } from "./preparation.ts";
import { StepLog } from "./step-log.ts";
import { environmentWorkspace } from "./work-dirs.ts";
import { readCheckouts, removeWorkspace, type Workspace } from "./workspace.ts";

/**
 * Executes an action: prepares its environment, unless one is left from before an approval, and runs the steps in order.
 * Removes the environment at the end, unless the action has to wait for the approval of a step or of its push.
 *
 * @returns whether the action is done or waits for an approval
 * @throws WorkFailure when the action fails; the failed step has been reported
 * @throws the reason of the lease's signal when the signal ended the action
 */
export async function executeAction(
  assignment: Assignment,
  action: ActionWork,
): Promise<Pick<WorkEnd, "outcome" | "push">> {
  const { tools, lease } = assignment;
  const rules = requireSupportedPolicies(assignment.work.policies, tools.isolation);
  const workspace = environmentWorkspace(tools, action.environment?.id ?? "");
  const timeMs = action.maxTime && durationMs(action.maxTime);
  const timeoutError = new WorkFailure("max_time_exceeded", "the action took longer than it may");
  let isKept = false;
  let push: StepPush | undefined;
  try {
    await withTimeLimit(timeMs, lease.signal, timeoutError, async (signal) => {
      const checkouts = await checkoutsOf(assignment, action, workspace, signal);
      const folder = join(workspace.tree, checkouts[0]?.location ?? "");
      const place = { workspace, checkouts };
      const image = await imageOfEnvironment(assignment, action.environment, place, signal);
      const environment = await environmentOf(assignment, action, workspace);
      const { CHARTROOM_OUTPUTS: outputs = "", CHARTROOM_PULL_REQUEST: pullRequest = "" } = environment;
      const readable = [secretsFolderOf(workspace), outputs, pullRequest].filter((path) => path !== "");
      const network = await openNetwork(assignment, workspace, action.environment);
      try {
        const runCommand = await tools.isolation.enter(workspace, readable, { network, rules, image });
        const run = { assignment, action, workspace, checkouts, folder, environment, runCommand, signal };
        tools.watch?.enter(watchedOf(run));
        push = await runSteps(run).finally(() => tools.watch?.leave(watchedOf(run)));
      } finally {
        await network?.close();
      }
      isKept = push !== undefined || action.steps.at(-1)?.step.case === "approval";
    });
    return { outcome: isKept ? Outcome.WAITING : Outcome.DONE, ...(push && { push }) };
  } finally {
    const environmentId = action.environment?.id ?? "";
    await (lease.isLost ? tools.watch?.abandon(environmentId) : tools.watch?.settled(environmentId));
    // Secrets belong to the lease, so they do not stay in a workspace that waits.
    if (isKept) await unmountSecrets(secretsFolderOf(workspace));
    else
      await removeWorkspace(tools.programs, workspace).then(
        () => tools.watch?.forget(environmentId),
        (error) =>
          tools.log.warn(
            { folder: workspace.folder, problem: error.message },
            "a workspace could not be removed",
          ),
      );
  }
}

/** Returns the checkouts of the action's workspace. Creates it unless it is left from before an approval. */
async function checkoutsOf(
  assignment: Assignment,
  action: ActionWork,
  workspace: Workspace,
  signal: AbortSignal,
): Promise<readonly Checkout[]> {
  if (!action.hasWorkspace) {
    return prepareWorkspace(assignment, {
      workspace,
      initializer: action.environment?.spec?.content?.initializer,
      prebuildId: action.prebuildId,
      namedFiles: action.environment ? namedFilesOf(action.environment) : [],
      signal,
    });
  }
  const kept = await readCheckouts(workspace);
  if (kept) return kept;
  throw new WorkFailure(
    "workspace_missing",
    "the files that the steps before the approval left are not on this machine any more",
  );
}

type StepProgress = NonNullable<Progress["steps"]>[number];

/** Runs the steps up to one that needs an approval. @returns the push that needs an approval; otherwise undefined */
async function runSteps(run: Omit<StepRun, "log" | "stepIndex">): Promise<StepPush | undefined> {
  const { assignment, action } = run;
  const { lease } = assignment;
  const reports = new StepReports(lease, run.signal);
  const { signal } = reports;
  let environment: Progress["environment"] = { phase: EnvironmentPhase.RUNNING };
  let agents: readonly string[] = [];
  for (const [stepIndex, step] of action.steps.entries()) {
    signal.throwIfAborted();
    if (stepIndex < action.firstStep) continue;
    // People decide this step. No runner waits for them.
    if (step.step.case === "approval") break;
    const progress = { ...(environment && { environment }), steps: [{ stepIndex, state: State.RUNNING }] };
    if (isReportedFirst(step)) await lease.report(progress);
    else reports.send(progress, { mayWait: stepIndex > action.firstStep });
    environment = undefined;
    const log = new StepLog(({ offset, data }) =>
      lease.report({ logs: [{ stepIndex, offset: BigInt(offset), data }] }, { mayWait: true }),
    );
    const { watch } = assignment.tools;
    const watched = watchedOf(run);
    watch?.turnBegins(watched);
    try {
      const traced = { ...run, environment: stepEnvironment(run, stepIndex) };
      const result = await runStep({ ...traced, signal, stepIndex, log }, step).finally(() =>
        watch?.turnEnds(watched),
      );
      await log.close();
      assignment.warnings.push(...(result.warnings ?? []));
      if (result.asksToPush) {
        lease.signal.throwIfAborted();
        return result.asksToPush;
      }
      agents = result.agentExecutionIds ?? [];
      const ended = { steps: [toStepProgress(stepIndex, result)] };
      // The next step may only begin if the service accepts the values of a report.
      const decides = step.step.case === "report" && stepIndex < action.steps.length - 1;
      if (decides || agents.length > 0) await lease.report(ended);
      else reports.send(ended, { mayWait: true });
    } catch (error) {
      // Report the step's last output even if the step was stopped.
      await log.close().catch(() => undefined);
      lease.signal.throwIfAborted();
      const failure = failureReportOf(error, assignment.secrets);
      reports.send({ steps: [{ stepIndex, state: State.FAILED, failure }] }, { mayWait: true });
      throw error;
    }
    // The next step works on the same files.
    await untilAgentsStopped(run, agents);
  }
  lease.signal.throwIfAborted();
  return undefined;
}

function watchedOf({ action, assignment, workspace, checkouts }: Omit<StepRun, "log" | "stepIndex">) {
  const environmentId = action.environment?.id ?? "";
  const { secrets, secretIds } = assignment;
  return { environmentId, workspace, checkouts, secrets, secretIds };
}

/** Returns the environment of a step's commands, with the step's span for commands that trace. */
function stepEnvironment(
  { environment, action }: Pick<StepRun, "environment" | "action">,
  stepIndex: number,
) {
  const traceparent = stepTraceparent(action, stepIndex);
  return traceparent === undefined ? environment : { ...environment, TRACEPARENT: traceparent };
}

/**
 * Returns whether the service must know that a step runs before the step begins. The service starts an agent only for a
 * running step, and a pull request cannot be undone.
 */
function isReportedFirst({ step }: WorkflowStep): boolean {
  if (step.case === "report")
    return step.value.outputs.some(({ extraction }) => extraction.case === "prompt");
  return step.case !== "task";
}

/** Sends reports that steps do not wait for. A report that is refused aborts the steps. */
class StepReports {
  readonly #lease: Lease;
  readonly #refused = new AbortController();
  /** Ends the steps when aborted. */
  readonly signal: AbortSignal;

  constructor(lease: Lease, signal: AbortSignal) {
    this.#lease = lease;
    this.signal = AbortSignal.any([signal, this.#refused.signal]);
  }

  send(progress: Progress, options: { readonly mayWait: boolean }): void {
    this.#lease.report(progress, options).catch((error) => this.#refused.abort(error));
  }
}

function toStepProgress(
  stepIndex: number,
  { pullRequestUrl, outputs, approvedPushDigest }: StepResult,
): StepProgress {
  return {
    stepIndex,
    state: State.DONE,
    ...(approvedPushDigest !== undefined && { approvedPushDigest }),
    ...(pullRequestUrl !== undefined && { pullRequestUrl }),
    ...(outputs && { outputs: { ...outputs } }),
  };
}

/**
 * Returns the complete environment of an action's commands: the secrets, then the parameters, then the runner's own
 * variables, which override both. Long values are in files next to the tree.
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
    ...(await mountSecrets(work, secretsFolderOf({ folder }))),
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

function secretsFolderOf({ folder }: Pick<Workspace, "folder">): string {
  return join(folder, "secrets");
}
