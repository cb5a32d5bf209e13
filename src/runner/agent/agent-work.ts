import { join } from "node:path";
import { AgentForm, type AgentWork } from "#gen/runner/v1/work_pb.js";
import { AgentExecutionRole, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Checkout } from "../git/git-checkout.ts";
import type { Assignment } from "../protocol/assignment.ts";
import type { Lease } from "../protocol/lease.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { namedFilesOf } from "../steps/environment-work.ts";
import { prepareWorkspace } from "../steps/preparation.ts";
import { environmentWorkspace } from "../steps/work-dirs.ts";
import { checkoutsOf, type Workspace } from "../steps/workspace.ts";
import { agentEnvironmentOf, agentFactsOf } from "./agent-facts.ts";
import { agentInputs } from "./agent-inputs.ts";
import { converseInJsonLines } from "./agent-json.ts";
import { type AgentProgress, AgentReport } from "./agent-report.ts";
import type { AgentRun } from "./agent-run.ts";
import { agentStateIn } from "./agent-state.ts";
import { converseInText } from "./agent-text.ts";

/**
 * Runs an agent's program in its environment, hands it inputs and tells what it
 * answers, until the program ends by itself or the run is stopped.
 *
 * @throws WorkFailure why the run failed
 * @throws the reason of the lease's signal when that ended it
 */
export async function executeAgent(assignment: Assignment, work: AgentWork): Promise<void> {
  const { tools, lease } = assignment;
  const { agentExecution, environment, command } = work;
  const [program, ...args] = command;
  if (agentExecution?.spec?.desiredPhase === Phase.STOPPED) lease.interrupt("stop");
  lease.signal.throwIfAborted();
  if (program === undefined)
    throw new WorkFailure("agent_unknown", "the agent is registered without a program");
  const workspace = environmentWorkspace(tools, environment?.id ?? "");
  const report = reportUnder(lease, work.lastSequence);
  const checkouts = await checkoutsIn(workspace, assignment, work);
  const facts = agentFactsOf(work, assignment.work.policies?.agentPolicy);
  const state = await agentStateIn(workspace, facts.runId);
  const isStep = agentExecution?.metadata?.role === AgentExecutionRole.WORKFLOW;
  if (isStep && state.startedBefore > 0) throw interrupted();
  const run: AgentRun = {
    assignment,
    program,
    args,
    folder: join(workspace.tree, checkouts[0]?.location ?? ""),
    environment: await agentEnvironmentOf(assignment, work, { facts, workspace, state }),
    facts,
    state,
    report,
    inputs: (signal) => agentInputs(lease, signal),
    signal: lease.signal,
    isStep,
    becomesReady: !isStep && agentExecution?.status?.phase !== Phase.WAITING_FOR_INPUT,
  };
  try {
    await converserOf(work.form)(run);
    // The step that asked reads the answer of a run that waits, and stops it then.
    if (isStep) await untilAborted(lease.signal);
  } finally {
    // What the agent said to its end is worth telling however it ended.
    await report.flush().catch(() => undefined);
  }
}

function converserOf(form: AgentForm): (run: AgentRun) => Promise<void> {
  switch (form) {
    case AgentForm.JSON_LINES:
      return converseInJsonLines;
    case AgentForm.TEXT:
      return converseInText;
    default:
      throw new WorkFailure("agent_unknown", "the agent speaks in a form that this runner does not know");
  }
}

function reportUnder(lease: Lease, lastSequence: bigint): AgentReport {
  const deliver = async (progress: AgentProgress) => {
    const answer = await lease.ask((client, name, options) =>
      client.reportAgent({ ...progress, ...name }, options),
    );
    lease.heard(answer);
    return answer.lastSequence;
  };
  return new AgentReport(deliver, lastSequence);
}

/** What is checked out in the run's environment, which is made where nobody has made it yet. */
async function checkoutsIn(
  workspace: Workspace,
  assignment: Assignment,
  { environment, prebuildId }: AgentWork,
): Promise<readonly Checkout[]> {
  const checkouts = await checkoutsOf(workspace);
  if (checkouts) return checkouts;
  if (!environment || environment.status?.phase !== EnvironmentPhase.CREATING) throw environmentFailed(GONE);
  const { lease } = assignment;
  const made = await prepareWorkspace(assignment, {
    workspace,
    initializer: environment.spec?.content?.initializer,
    prebuildId,
    namedFiles: namedFilesOf(environment),
    signal: lease.signal,
  }).catch((error) => {
    throw error instanceof WorkFailure ? environmentFailed(error.message) : error;
  });
  lease.heard(
    await lease.ask((client, name, options) =>
      client.reportAgent({ ...name, environment: { phase: EnvironmentPhase.RUNNING } }, options),
    ),
  );
  return made;
}

const GONE = "the workspace of the environment is not on this machine: start the run in another environment";

/** In the word by which the service knows that it was not the agent. */
function environmentFailed(message: string): WorkFailure {
  return new WorkFailure("environment_failed", message);
}

async function untilAborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
  throw signal.reason;
}

function interrupted(): WorkFailure {
  return new WorkFailure("agent_interrupted", "the runner was lost in the middle of the agent's turn");
}
