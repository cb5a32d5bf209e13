import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentCapabilities, NewSessionResponse } from "@agentclientprotocol/sdk";
import { AgentForkAbility as Ability } from "#gen/service/v1/agent_pb.js";
import { WorkFailure } from "../../protocol/work-failure.ts";
import type { AcpPeer, SessionOptions } from "./acp-session.ts";

/** A turn of a conversation: its run, and the input that began it. Both are empty before the first. */
export interface AcpTurn {
  readonly runId: string;
  readonly inputId: string;
}

/** The place at which a session is forked. */
export interface AcpFork {
  /** The folder of the files about the conversation. */
  readonly stateFolder: string;
  /** The turn that must be the latest of the session: the protocol forks a session as it is. */
  readonly turn: AcpTurn;
}

/** Returns whether an agent offers `session/fork`, which the first version of the protocol has as unstable. */
export function offersFork({ sessionCapabilities }: AgentCapabilities): boolean {
  const { fork } = (sessionCapabilities ?? {}) as { readonly fork?: object | null };
  return fork !== undefined && fork !== null;
}

export function forkAbilityOf(capabilities: AgentCapabilities): Ability {
  return offersFork(capabilities) ? Ability.LATEST : Ability.NONE;
}

const FILE = "acp-turn.json";

/** Records the turn that a session begins, so that a fork knows whether the session has gone on. */
export async function recordTurn(stateFolder: string, turn: AcpTurn): Promise<void> {
  const file = join(stateFolder, FILE);
  await writeFile(`${file}.draft`, JSON.stringify(turn), { mode: 0o600 });
  await rename(`${file}.draft`, file);
}

async function lastTurn(stateFolder: string): Promise<AcpTurn> {
  try {
    return JSON.parse(await readFile(join(stateFolder, FILE), "utf8"));
  } catch {
    return { runId: "", inputId: "" };
  }
}

/**
 * Forks the session of a conversation at the end of a turn.
 * @param sessionId id of that session; undefined where there is none on this machine
 * @returns the new session
 * @throws WorkFailure when the agent cannot, or the session has gone on since
 * @throws RequestError the agent's own error
 */
export async function forkSession(
  { agent, capabilities }: AcpPeer,
  { folder, mcpServers, signal }: Pick<SessionOptions, "folder" | "mcpServers" | "signal">,
  { stateFolder, turn }: AcpFork,
  sessionId: string | undefined,
): Promise<NewSessionResponse> {
  if (sessionId === undefined) throw cannotFork("its session is not on this machine");
  if (!offersFork(capabilities)) throw cannotFork("it offers no way to");
  await requireLatest(stateFolder, turn);
  const forked = await agent.request<NewSessionResponse>(
    "session/fork",
    { sessionId, cwd: folder, mcpServers: [...mcpServers] },
    { cancellationSignal: signal, stopWaitingOnCancel: true },
  );
  // A turn that began in the meantime may be in it.
  await requireLatest(stateFolder, turn);
  return forked;
}

async function requireLatest(stateFolder: string, { runId, inputId }: AcpTurn): Promise<void> {
  const last = await lastTurn(stateFolder);
  if (last.inputId === inputId && last.runId === runId) return;
  throw cannotFork("the run that was forked has gone on since: fork it again");
}

/** Returns the failure of a run whose agent cannot fork the conversation. */
export function cannotFork(why: string): WorkFailure {
  return new WorkFailure("agent_failed", `the agent could not fork the conversation: ${why}`);
}
