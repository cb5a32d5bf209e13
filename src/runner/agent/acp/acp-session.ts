import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type AgentCapabilities,
  type AuthMethod,
  type ClientCapabilities,
  type ClientContext,
  type LoadSessionResponse,
  type McpCapabilities,
  type McpServer,
  PROTOCOL_VERSION,
  RequestError,
  type ResumeSessionResponse,
  type SessionConfigOption,
  type SessionModeState,
} from "@agentclientprotocol/sdk";
import type { AgentWork_McpServer as RegisteredServer } from "#gen/runner/v1/work_pb.js";
import { secretNames, withSecrets } from "../../../domain/agent/mcp/mcp-server.ts";
import type { Secrets } from "../../../domain/secrets.ts";
import { WorkFailure } from "../../protocol/work-failure.ts";
import { type AcpFork, cannotFork, forkSession } from "./acp-fork.ts";

/** Capabilities of this client. */
const CLIENT_CAPABILITIES: ClientCapabilities = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
  elicitation: { form: {} },
  session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
};

/** The error of an agent that demands authentication (JSON-RPC code of the protocol). */
const AUTH_REQUIRED = -32_000;

/** An open session of an agent. */
export interface AcpSession {
  readonly id: string;
  /** Which session of the run it is, from 1. */
  readonly number: number;
  readonly modes: SessionModeState | undefined;
  readonly configOptions: readonly SessionConfigOption[];
  /** Why an earlier session of the run does not go on; undefined where it does, or there was none. */
  readonly lost: string | undefined;
}

/** Options of a session. */
export interface SessionOptions {
  /** The folder that the agent works in. */
  readonly folder: string;
  readonly mcpServers: readonly McpServer[];
  /** The folder of the run's own files. */
  readonly stateFolder: string;
  /** True to fail where an earlier session does not go on: the run was started to go on with it. */
  readonly mustContinue: boolean;
  /** The place at which the run branches off another session, unless it has one of its own already; undefined for none. */
  readonly fork: AcpFork | undefined;
  /** Aborted when the agent took too long, or is to end. */
  readonly signal: AbortSignal;
  /** Called around the replay of an earlier session, of which the updates are known already. */
  readonly onReplay: (isReplaying: boolean) => void;
}

/** The agent's answer to `initialize`. */
export interface AcpPeer {
  readonly agent: ClientContext;
  readonly capabilities: AgentCapabilities;
  readonly authMethods: readonly AuthMethod[];
}

/**
 * Negotiates version and capabilities with an agent.
 * @throws WorkFailure for an agent of another version of the protocol
 */
export async function initialize(agent: ClientContext, signal: AbortSignal): Promise<AcpPeer> {
  const answer = await agent.request(
    "initialize",
    {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: CLIENT_CAPABILITIES,
      clientInfo: { name: "chartroom", version: "1" },
    },
    { cancellationSignal: signal, stopWaitingOnCancel: true },
  );
  if (answer.protocolVersion !== PROTOCOL_VERSION) {
    throw new WorkFailure(
      "agent_failed",
      `the agent speaks version ${answer.protocolVersion} of the Agent Client Protocol, and the runner version ${PROTOCOL_VERSION}`,
    );
  }
  return { agent, capabilities: answer.agentCapabilities ?? {}, authMethods: answer.authMethods ?? [] };
}

/**
 * Opens the session of a run: resumes the session of an earlier process if the agent can, or creates a new one.
 * @throws WorkFailure when the agent requires authentication, or an earlier session that must continue cannot
 */
export async function openSession(peer: AcpPeer, options: SessionOptions): Promise<AcpSession> {
  const earlier = await readSession(options.stateFolder);
  if (!earlier) return newSession(peer, options, { number: 1, lost: undefined }, options.fork);
  try {
    return await continueSession(peer, options, earlier);
  } catch (error) {
    options.signal.throwIfAborted();
    if (isAuthRequired(error)) throw unauthenticated(peer);
    const why = error instanceof RequestError ? error.message : "it offers no way to";
    if (options.mustContinue)
      throw new WorkFailure(
        "agent_failed",
        `the agent cannot go on with the session of the run that was resumed, start another run in the environment: ${why}`,
      );
    return newSession(peer, options, {
      number: earlier.number + 1,
      lost: `the agent could not go on with its session, and begins a new one: ${why}`,
    });
  }
}

async function continueSession(
  { agent, capabilities }: AcpPeer,
  { folder, mcpServers, signal, onReplay }: SessionOptions,
  { id, number }: StoredSession,
): Promise<AcpSession> {
  const request = { sessionId: id, cwd: folder, mcpServers: [...mcpServers] };
  const options = { cancellationSignal: signal, stopWaitingOnCancel: true };
  if (capabilities.sessionCapabilities?.resume) {
    const { modes, configOptions } = await agent.request<ResumeSessionResponse>(
      "session/resume",
      request,
      options,
    );
    return toSession({ id, number, lost: undefined }, { modes, configOptions });
  }
  if (!capabilities.loadSession) throw new Error("the agent cannot load sessions");
  onReplay(true);
  try {
    const { modes, configOptions } = await agent.request<LoadSessionResponse>(
      "session/load",
      request,
      options,
    );
    return toSession({ id, number, lost: undefined }, { modes, configOptions });
  } finally {
    onReplay(false);
  }
}

async function newSession(
  peer: AcpPeer,
  options: SessionOptions,
  { number, lost }: Pick<AcpSession, "number" | "lost">,
  fork?: AcpFork,
): Promise<AcpSession> {
  const { folder, mcpServers, stateFolder, signal } = options;
  try {
    const { sessionId, modes, configOptions } = fork
      ? await forkSession(peer, options, fork, (await readSession(fork.stateFolder))?.id)
      : await peer.agent.request(
          "session/new",
          { cwd: folder, mcpServers: [...mcpServers] },
          { cancellationSignal: signal, stopWaitingOnCancel: true },
        );
    if (typeof sessionId !== "string" || sessionId === "")
      throw new WorkFailure("agent_failed", "the agent opened a session without an id");
    await writeSession(stateFolder, { id: sessionId, number });
    return toSession({ id: sessionId, number, lost }, { modes, configOptions });
  } catch (error) {
    if (isAuthRequired(error)) throw unauthenticated(peer);
    if (fork && error instanceof RequestError && !signal.aborted) throw cannotFork(error.message);
    throw error;
  }
}

function toSession(
  session: Pick<AcpSession, "id" | "number" | "lost">,
  {
    modes,
    configOptions,
  }: {
    readonly modes?: SessionModeState | null | undefined;
    readonly configOptions?: readonly SessionConfigOption[] | null | undefined;
  },
): AcpSession {
  // The library does not check answers.
  const known = Array.isArray(modes?.availableModes) ? (modes ?? undefined) : undefined;
  return { ...session, modes: known, configOptions: Array.isArray(configOptions) ? configOptions : [] };
}

function isAuthRequired(error: unknown): boolean {
  return error instanceof RequestError && error.code === AUTH_REQUIRED;
}

function unauthenticated({ authMethods }: AcpPeer): WorkFailure {
  const ways = authMethods.map(({ name, description }) => (description ? `${name} (${description})` : name));
  const offer = ways.length === 0 ? "" : `. It offers: ${ways.join("; ")}`;
  return new WorkFailure(
    "agent_unauthenticated",
    `the agent demands authentication, which a run cannot do: give it its key by a script that is its command (docs/agents.md), or sign it in as the runner's user, with a command that finds that sign-in${offer}`.slice(
      0,
      4_096,
    ),
  );
}

const FILE = "acp-session.json";

type StoredSession = Pick<AcpSession, "id" | "number">;

async function readSession(folder: string): Promise<StoredSession | undefined> {
  try {
    const { sessionId: id, number = 1 } = JSON.parse(await readFile(join(folder, FILE), "utf8"));
    return typeof id === "string" ? { id, number } : undefined;
  } catch {
    return undefined;
  }
}

async function writeSession(folder: string, { id, number }: StoredSession): Promise<void> {
  const file = join(folder, FILE);
  await writeFile(`${file}.draft`, JSON.stringify({ sessionId: id, number }), { mode: 0o600 });
  await rename(`${file}.draft`, file);
}

/** The servers of the Model Context Protocol that an agent receives. */
export interface SessionServers {
  readonly servers: readonly McpServer[];
  /** A sentence for each server that it does not receive. */
  readonly problems: readonly string[];
}

/**
 * Returns the servers that an agent can use.
 * @param environment the variables of its program, among them secrets that are mounted so
 * @param secrets those that are named are masked from now on
 */
export function usableServers(
  registered: readonly RegisteredServer[],
  capabilities: McpCapabilities | undefined,
  environment: Readonly<Record<string, string>>,
  secrets: Secrets,
): SessionServers {
  const servers: McpServer[] = [];
  const problems: string[] = [];
  for (const server of registered) {
    const problem = problemOf(server, capabilities, environment);
    for (const name of Object.values(server.values).flatMap(secretNames))
      secrets.add(environment[name] ?? "");
    if (problem === undefined) servers.push(toServer(server, environment));
    else problems.push(`the agent does not receive the MCP server ${server.name}: ${problem}`);
  }
  return { servers, problems };
}

function problemOf(
  { url, values }: RegisteredServer,
  capabilities: McpCapabilities | undefined,
  environment: Readonly<Record<string, string>>,
): string | undefined {
  if (url !== "" && !capabilities?.http) return "it does not take servers with a URL";
  const missing = Object.values(values)
    .flatMap(secretNames)
    .find((name) => !Object.hasOwn(environment, name));
  return missing && `the run has no secret ${missing} as an environment variable`;
}

function toServer(
  { name, command, url, values }: RegisteredServer,
  environment: Readonly<Record<string, string>>,
): McpServer {
  const pairs = Object.entries(values).map(([key, value]) => ({
    name: key,
    value: withSecrets(value, (secret) => environment[secret] ?? ""),
  }));
  if (url !== "") return { type: "http", name, url, headers: pairs };
  const [program = "", ...args] = command;
  return { name, command: program, args, env: pairs };
}
