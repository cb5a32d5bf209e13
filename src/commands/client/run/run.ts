import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, createClient } from "@connectrpc/connect";
import type { Agent, AgentCodeContextSchema, UserInputBlockSchema } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import type { Approval } from "#gen/service/v1/approval_pb.js";
import { createHttpTransport } from "../../../runner/protocol/connection.ts";
import { StartError } from "../../start-error.ts";
import { call, isNotFound, keyedCall, readPages } from "../call.ts";
import type { ServerAccess } from "../server-access.ts";

/** Arguments of `chartroom run start`. */
export interface RunStart {
  /** Name or id of the agent; undefined for the default. */
  readonly agent: string | undefined;
  readonly name: string;
  readonly project: string | undefined;
  readonly environment: string | undefined;
  readonly url: string | undefined;
  /** The class of an environment created from the URL. */
  readonly class: string | undefined;
  /** The first message; undefined for none. */
  readonly prompt: string | undefined;
  /** True to hold its queue after a lost turn. */
  readonly holdAfterLostTurn?: boolean;
}

/** Starts a run and returns its id. @throws StartError */
export async function startRun(access: ServerAccess, start: RunStart): Promise<string> {
  const agents = agentsOf(access);
  const agentId = start.agent === undefined ? "" : await findAgentId(access, start.agent);
  const request = {
    agentId,
    name: start.name,
    ...codeContextOf(start),
    ...(start.holdAfterLostTurn && { holdAfterLostTurn: true }),
    ...(start.prompt !== undefined && { userInput: message(start.prompt) }),
  };
  const { agentExecutionId } = await keyedCall(access, (options) => agents.startAgent(request, options));
  return agentExecutionId;
}

/** Arguments of `chartroom run resume`. */
export interface RunResumption {
  /** Id of the run to continue. */
  readonly run: string;
  /** The first message; undefined for none. */
  readonly prompt: string | undefined;
}

/** A run that continues another one. */
export interface ResumedRun {
  readonly id: string;
  /** Number of the last block before its own blocks. */
  readonly earlierSequence: bigint;
}

/**
 * Starts a run that continues a stopped one.
 * @throws StartError
 */
export async function resumeRun(access: ServerAccess, { run, prompt }: RunResumption): Promise<ResumedRun> {
  const agents = agentsOf(access);
  const request = { resumeFrom: run, ...(prompt !== undefined && { userInput: message(prompt) }) };
  const { agentExecutionId: id } = await keyedCall(access, (options) => agents.startAgent(request, options));
  return { id, earlierSequence: await earlierSequenceOf(access, id) };
}

/** Arguments of `chartroom run fork`. */
export interface RunFork extends RunResumption {
  /** Number of the last block to include in the fork; undefined for all blocks. */
  readonly sequence: number | undefined;
}

/**
 * Starts a run that branches off another one.
 * @throws StartError
 */
export async function forkRun(
  access: ServerAccess,
  { run: agentExecutionId, prompt, sequence }: RunFork,
): Promise<ResumedRun> {
  const agents = agentsOf(access);
  const request = {
    agentExecutionId,
    ...(sequence !== undefined && { sequence: BigInt(sequence) }),
    ...(prompt !== undefined && { userInput: message(prompt) }),
  };
  const { agentExecutionId: id } = await keyedCall(access, (options) =>
    agents.forkAgentExecution(request, options),
  );
  return { id, earlierSequence: await earlierSequenceOf(access, id) };
}

async function earlierSequenceOf(access: ServerAccess, agentExecutionId: string): Promise<bigint> {
  const { agentExecution } = await call(access, (options) =>
    agentsOf(access).getAgentExecution({ agentExecutionId }, options),
  );
  return agentExecution?.metadata?.earlierSequence ?? 0n;
}

/** @throws StartError for more than one code context */
function codeContextOf({ project, environment, url, class: environmentClassId }: RunStart): {
  readonly codeContext?: MessageInitShape<typeof AgentCodeContextSchema>;
} {
  if ([project, environment, url].filter((each) => each !== undefined).length > 1)
    throw new StartError("give one of --project, --environment and --url");
  if (environmentClassId !== undefined && url === undefined)
    throw new StartError("--class goes with --url: projects and environments have classes of their own");
  if (project !== undefined) return { codeContext: { context: { case: "projectId", value: project } } };
  if (environment !== undefined)
    return { codeContext: { context: { case: "environmentId", value: environment } } };
  if (url === undefined) return {};
  const value = { url, environmentClassId: environmentClassId ?? "" };
  return { codeContext: { context: { case: "contextUrl", value } } };
}

/**
 * Sends a message to a run.
 * @returns the id of the message
 * @throws StartError
 */
export async function sendToRun(
  access: ServerAccess,
  { run: agentExecutionId, text: content, steer }: { run: string; text: string; steer: boolean },
): Promise<string> {
  const agents = agentsOf(access);
  const userInput = message(content);
  await call(access, (options) =>
    agents.sendToAgentExecution(
      { agentExecutionId, input: { case: "userInput", value: userInput } },
      options,
    ),
  );
  if (!steer) return userInput.id;
  const control = { case: "steerQueuedMessage", value: { userInputId: userInput.id } } as const;
  const order = { agentExecutionId, input: { case: "controlInput" as const, value: { control } } };
  await call(access, (options) => agents.sendToAgentExecution(order, options)).catch((error) => {
    // It has been delivered meanwhile.
    if (!isNotFound(error)) throw error;
  });
  return userInput.id;
}

/** A decision about a lost turn. */
export type LostTurnDecision = "retryTurn" | "goOn";

/** Decides about a run's lost turn. @throws StartError */
export async function decideLostTurn(
  access: ServerAccess,
  agentExecutionId: string,
  decision: LostTurnDecision,
): Promise<void> {
  const input = { case: "controlInput" as const, value: { control: { case: decision, value: {} } } };
  await call(access, (options) =>
    agentsOf(access).sendToAgentExecution({ agentExecutionId, input }, options),
  );
}

/**
 * Returns a sentence about an approval that was requested in a lost turn: its decision reaches the agent only when
 * the agent gets that turn again. Empty for any other approval.
 * @throws StartError
 */
export async function lostTurnNote(
  access: ServerAccess,
  agentExecutionId: string,
  { createdAt }: Approval,
): Promise<string> {
  const { agentExecution } = await call(access, (options) =>
    agentsOf(access).getAgentExecution({ agentExecutionId }, options),
  );
  const { lostAt } = agentExecution?.status?.lostTurn ?? {};
  if (!lostAt || !createdAt || timestampMs(createdAt) > timestampMs(lostAt)) return "";
  return `the turn that asked was lost with its runner, and the agent receives the answer only once it is asked for the turn again: chartroom run retry-turn ${agentExecutionId}\n`;
}

/** Stops a run. @throws StartError */
export async function stopRun(access: ServerAccess, agentExecutionId: string): Promise<void> {
  await call(access, (options) => agentsOf(access).stopAgentExecution({ agentExecutionId }, options));
}

/**
 * Returns the text from the command line, or all of standard input when the text is missing or a dash.
 * @throws StartError for an empty text, and when standard input is a terminal
 */
export async function textOf(
  given: string | undefined,
  input: Readable & { readonly isTTY?: boolean },
): Promise<string> {
  if (given === undefined && input.isTTY)
    throw new StartError("give the text as an argument, or by standard input");
  const all = given === undefined || given === "-" ? (await text(input)).trimEnd() : given;
  if (all === "") throw new StartError("the text is empty");
  return all;
}

/** Returns a client of AgentService. */
export function agentsOf({ server }: ServerAccess): Client<typeof AgentService> {
  return createClient(AgentService, createHttpTransport(server));
}

/** Returns all agents that the caller sees. @throws StartError */
export function listAgents(access: ServerAccess): Promise<Agent[]> {
  return readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call(access, (options) => agentsOf(access).listAgents({ pagination }, options));
    return { elements: page.agents, pagination: page.pagination };
  });
}

/** Returns the id of the agent with a name or id. @throws StartError when there is none */
export async function findAgentId(access: ServerAccess, named: string): Promise<string> {
  const agents = await listAgents(access);
  const found = agents.find(({ id, name }) => name === named || id === named);
  if (found) return found.id;
  const names = agents.map(({ name }) => name).join(", ");
  throw new StartError(`there is no agent ${named}${names && `: there are ${names}`}`);
}

function message(content: string) {
  const inputs = [{ input: { case: "text" as const, value: { content } } }];
  return { id: randomUUID(), inputs } satisfies MessageInitShape<typeof UserInputBlockSchema>;
}
