import { join } from "node:path";
import {
  ReportAgentRequest_State as State,
  type StreamInputsResponse,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { AgentForm, type AgentWork } from "#gen/runner/v1/work_pb.js";
import { AgentExecutionRole, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { WatchedWorkspace } from "../changes/environment-report.ts";
import type { EnvironmentWatch } from "../changes/environment-watch.ts";
import { openNetwork } from "../egress/open-network.ts";
import type { Checkout } from "../git/git-checkout.ts";
import { unmountSecrets } from "../process/work-secrets.ts";
import type { Assignment } from "../protocol/assignment.ts";
import type { Lease } from "../protocol/lease.ts";
import { rulesForAgents } from "../protocol/supported-policies.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { imageOfEnvironment } from "../steps/environment-image.ts";
import { namedFilesOf } from "../steps/environment-work.ts";
import { prepareWorkspace } from "../steps/preparation.ts";
import { environmentWorkspace } from "../steps/work-dirs.ts";
import { readCheckouts, type Workspace } from "../steps/workspace.ts";
import type { AcpLimits } from "./acp/acp-limits.ts";
import { agentEnvironmentOf, toAgentFacts } from "./agent-facts.ts";
import { AgentReporter } from "./agent-reporter.ts";
import { openAgentState } from "./agent-state.ts";
import { driveJsonLinesAgent } from "./json-lines-agent.ts";
import type { RunningAgent } from "./running-agent.ts";
import { driveTextAgent } from "./text-agent.ts";

/**
 * Runs an agent's program in its environment, passes it inputs and reports its answers until the program exits or
 * the execution is stopped.
 *
 * @param acpLimits for tests
 * @throws WorkFailure when the execution fails
 * @throws the reason of the lease's signal when the signal ended the execution
 */
export async function executeAgent(
  assignment: Assignment,
  work: AgentWork,
  acpLimits: AcpLimits = {},
): Promise<void> {
  const { tools, lease } = assignment;
  if (work.apiDefined && !tools.apiAgents) throw new WorkFailure("policy_unsupported", API_AGENT_REFUSED);
  const rules = rulesForAgents(assignment.work.policies, tools.isolation);
  const { agentExecution, environment, command } = work;
  const [program, ...args] = command;
  if (agentExecution?.spec?.desiredPhase === Phase.STOPPED) lease.interrupt("stop");
  lease.signal.throwIfAborted();
  if (program === undefined)
    throw new WorkFailure("agent_unknown", "the agent is registered without a program");
  const workspace = environmentWorkspace(tools, environment?.id ?? "");
  const checkouts = await prepareCheckouts(workspace, assignment, work);
  const image = await imageOfEnvironment(
    assignment,
    environment,
    { workspace, checkouts },
    lease.signal,
  ).catch((error) => {
    const isOfFiles = error instanceof WorkFailure && error.reason !== "policy_unsupported";
    throw isOfFiles ? environmentFailed(error.message) : error;
  });
  const environmentId = environment?.id ?? "";
  const { secrets, secretIds } = assignment;
  const watched = { environmentId, workspace, checkouts, secrets, secretIds };
  const turns = watchTurns(tools.watch, watched);
  const report = new AgentReporter((progress) => lease.reportAgent(progress), work.lastSequence, turns);
  if (environment?.status?.phase === EnvironmentPhase.CREATING) report.environmentIsRunning();
  const facts = toAgentFacts(work, assignment.work.policies?.agentPolicy);
  const state = await openAgentState(workspace, facts.conversationId);
  const isStep = agentExecution?.metadata?.role === AgentExecutionRole.WORKFLOW;
  if (isStep && state.startedBefore > 0) throw interrupted();
  const agentEnvironment = await agentEnvironmentOf(assignment, work, { facts, workspace, state });
  const readable = [state.imagesFolder, state.secretsFolder, state.pullRequestFile];
  const network = await openNetwork(assignment, workspace, environment);
  const runCommand = await tools.isolation
    .enter(workspace, readable, { network, rules, image })
    .catch(async (error) => {
      await network?.close();
      throw error;
    });
  const agent: RunningAgent = {
    assignment,
    program,
    args,
    tree: workspace.tree,
    folder: join(workspace.tree, checkouts[0]?.location ?? ""),
    environment: agentEnvironment,
    runCommand,
    facts,
    mcpServers: facts.policies.mcpDisabled ? [] : work.mcpServers,
    state,
    report,
    inputs: (signal) => receiveInputs(lease, signal),
    signal: lease.signal,
    isStep,
    becomesReady: !isStep && agentExecution?.status?.phase !== Phase.WAITING_FOR_INPUT,
  };
  tools.watch?.enter(watched);
  try {
    await (await driverOf(work.form))(agent, acpLimits);
    // The action's step reads the answer while the execution waits, and then stops the execution.
    if (isStep) await untilAborted(lease.signal);
  } finally {
    await network?.close();
    assignment.warnings.push(...(network?.warnings() ?? []));
    // Report the agent's last output no matter how the agent ended.
    await report.flush().catch(() => undefined);
    turns.end();
    if (!lease.isLost) await tools.watch?.settled(environmentId);
    tools.watch?.leave(watched);
    await unmountSecrets(state.secretsFolder).catch((error) =>
      tools.log.warn({ problem: error.message }, "the files of an agent's secrets could not be removed"),
    );
  }
}

async function driverOf(
  form: AgentForm,
): Promise<(agent: RunningAgent, acpLimits: AcpLimits) => Promise<void>> {
  switch (form) {
    case AgentForm.ACP:
      // Loaded on demand: other agents do not need the protocol's library, which costs time and memory.
      return (await import("./acp/acp-agent.ts")).driveAcpAgent;
    case AgentForm.JSON_LINES:
      return driveJsonLinesAgent;
    case AgentForm.TEXT:
      return driveTextAgent;
    default:
      throw new WorkFailure("agent_unknown", "the agent speaks in a form that this runner does not know");
  }
}

const API_AGENT_REFUSED =
  "the agent is defined by the API, and the operator of this runner does not allow that: start the runner with --allow-api-agents";

/** Notifies the watch of an agent's turns. A turn lasts while the agent's state is RUNNING. */
function watchTurns(watch: EnvironmentWatch | undefined, watched: WatchedWorkspace) {
  let isRunning = false;
  const end = () => {
    if (isRunning) watch?.turnEnds(watched);
    isRunning = false;
  };
  const onState = (state: State) => {
    end();
    isRunning = state === State.RUNNING;
    if (isRunning) watch?.turnBegins(watched);
  };
  return { onState, end };
}

/** Returns the checkouts of the execution's environment. Creates the environment if it does not exist yet. */
async function prepareCheckouts(
  workspace: Workspace,
  assignment: Assignment,
  { environment, prebuildId }: AgentWork,
): Promise<readonly Checkout[]> {
  const checkouts = await readCheckouts(workspace);
  if (checkouts) return checkouts;
  if (!environment || environment.status?.phase !== EnvironmentPhase.CREATING)
    throw environmentFailed(WORKSPACE_MISSING);
  const { lease, tools } = assignment;
  const make = () =>
    prepareWorkspace(assignment, {
      workspace,
      initializer: environment.spec?.content?.initializer,
      prebuildId,
      namedFiles: namedFilesOf(environment),
      signal: lease.signal,
    });
  return tools.newEnvironments.run(make, lease.signal).catch((error) => {
    throw error instanceof WorkFailure ? environmentFailed(error.message) : error;
  });
}

const WORKSPACE_MISSING =
  "the workspace of the environment is not on this machine: start the run in another environment";

/** Returns a failure whose reason tells the service that the environment failed, not the agent. */
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

/**
 * Yields an execution's inputs in the order of delivery, each once per lease. The service resends
 * unacknowledged inputs whenever the stream is reopened; those duplicates are skipped.
 */
async function* receiveInputs(lease: Lease, signal: AbortSignal): AsyncGenerator<StreamInputsResponse, void> {
  const taken = new Set<string>();
  const handed = lease.follow((client, name, options) => client.streamInputs(name, options), signal);
  for await (const response of handed) {
    const id = response.input?.id ?? "";
    if (taken.has(id)) continue;
    taken.add(id);
    yield response;
  }
}
