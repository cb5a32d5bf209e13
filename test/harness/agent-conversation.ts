import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type AgentOutputBlock, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { addDefaultAgent } from "./added-agent.ts";
import { type Answer, post } from "./call.ts";
import { succeeded } from "./fake-runner.ts";
import { ROOT } from "./program.ts";
import type { ReachableServer } from "./server.ts";
import { until } from "./until.ts";

type Body = Answer["body"];
type ServerEndpoint = Pick<ReachableServer, "url" | "token">;

/** One input that the scripted agent received, as it recorded it before acknowledging it. */
export interface ReceivedInput {
  readonly run: string;
  readonly id: string;
  readonly words: string;
}

/** Registers the scripted agent; it records the inputs that it receives. */
export async function addScriptedAgent(
  { dataDir }: Pick<ReachableServer, "dataDir">,
  logFile: string,
): Promise<void> {
  const command = [process.execPath, join(ROOT, "examples/agents/scripted-agent.js"), logFile];
  await addDefaultAgent({ dataDir }, "scripted", "json-lines", command);
}

export function receivedInputs(runId: string, logFile: string): ReceivedInput[] {
  const text = existsSync(logFile) ? readFileSync(logFile, "utf8") : "";
  const lines = text.split("\n").slice(0, -1);
  return lines.map((line): ReceivedInput => JSON.parse(line)).filter(({ run }) => run === runId);
}

/** A conversation with a real agent process, from a user's side. */
export interface Conversation {
  readonly id: string;
  get(): Promise<Body>;
  /** Sends an input and expects success. */
  send(input: object, more?: object): Promise<void>;
  /** Sends a text with this input id. */
  say(id: string, content: string): Promise<void>;
  /** Returns its inputs, including past ones. */
  inputs(): Promise<Body[]>;
  /** All blocks so far, in order. */
  readonly blocks: readonly AgentOutputBlock[];
  /** Returns the texts of all blocks so far without their line ends, and other blocks by name. */
  output(): string[];
  /** Waits until the service has heard that the agent has seen an input, which is not delivered again from then on. */
  untilSeen(id: string): Promise<void>;
  /** Waits for an output text. */
  untilOutput(text: string): Promise<void>;
  /** Waits until no input is queued or open, the agent is waiting, and all of its output is in `blocks`. */
  untilIdle(): Promise<void>;
  /** Waits until it is in a phase, and all of its output is in `blocks`. */
  untilPhase(phase: "RUNNING" | "WAITING_FOR_INPUT" | "STOPPED"): Promise<Body>;
  stop(): Promise<void>;
}

/** Starts an execution of the default agent. */
export async function startConversation(server: ServerEndpoint, request: object = {}): Promise<Conversation> {
  const { agentExecutionId } = await succeeded(post(server, "AgentService/StartAgent", request));
  return conversationOf(server, agentExecutionId);
}

/**
 * Returns the conversation of an execution.
 *
 * @param server the current server, which the test may replace
 */
export function conversationOf(server: ServerEndpoint, id: string): Conversation {
  const call = (operation: string, body: object = {}): Promise<Body> =>
    succeeded(post(server, `AgentService/${operation}`, { agentExecutionId: id, ...body }));
  const get = async () => (await call("GetAgentExecution")).agentExecution;
  const send = async (input: object, more: object = {}) => {
    await call("SendToAgentExecution", { ...input, ...more });
  };
  const inputs = async () => {
    const all: Body[] = [];
    for (let token = ""; ; ) {
      const pagination = { pageSize: 100, token };
      const page = await call("ListAgentInputs", { includePast: true, pagination });
      all.push(...page.inputs);
      token = page.pagination.nextToken;
      if (token === "") return all;
    }
  };
  const blocks = collectBlocks(server, id);
  const output = () => blocks.map(textOf);
  const missingBlocks = async () => {
    const { lastSequence } = await call("ListAgentOutputBlocks", { pagination: { pageSize: 1 } });
    return Number(lastSequence) - Number(blocks.at(-1)?.sequence ?? 0);
  };
  return {
    id,
    get,
    send,
    say: (inputId, content) => send({ userInput: { id: inputId, inputs: [{ text: { content } }] } }),
    inputs,
    blocks,
    output,
    async untilSeen(inputId) {
      await until(inputs, (all) =>
        all.some((input) => input.id === inputId && input.receipt.endsWith("_SEEN")),
      );
    },
    async untilOutput(text) {
      await until(output, (words) => words.includes(text));
    },
    async untilIdle() {
      await until(
        // The inputs first: between two turns the run waits, and the next of them may be seen right after. The output
        // last: the turn's is stored by the time the run waits.
        async () => ({
          receipts: (await inputs()).map(({ receipt }) => receipt),
          phase: (await get()).status.phase,
          missing: await missingBlocks(),
        }),
        ({ receipts, phase, missing }) =>
          phase === "PHASE_WAITING_FOR_INPUT" &&
          receipts.every((receipt) => /SEEN|DELETED/.test(receipt)) &&
          missing === 0,
      );
    },
    async untilPhase(phase) {
      const run = await until(get, ({ status }) => status.phase === `PHASE_${phase}`);
      // The blocks come by another connection.
      await until(missingBlocks, (missing) => missing <= 0);
      return run;
    },
    async stop() {
      await call("StopAgentExecution");
    },
  };
}

/**
 * Reads the blocks of an execution in the background, from whichever server is current, until the
 * tests of the file are over.
 */
function collectBlocks(server: ServerEndpoint, agentExecutionId: string): AgentOutputBlock[] {
  const blocks: AgentOutputBlock[] = [];
  const { signal } = closed;
  const read = async () => {
    const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
    const news = createClient(AgentService, transport).watchAgentExecution(
      { agentExecutionId, afterSequence: blocks.at(-1)?.sequence ?? 0n },
      { headers: { authorization: `Bearer ${server.token}` }, signal },
    );
    let hasStopped = false;
    for await (const { news: each } of news) {
      if (each.case === "block") blocks.push(each.value);
      if (each.case === "agentExecution") hasStopped = each.value.status?.phase === Phase.STOPPED;
    }
    // Not as soon as it has stopped: its last blocks come behind that, and the stream may break off before them.
    isOver = hasStopped;
  };
  let isOver = false;
  const readOn = async () => {
    while (!isOver && !signal.aborted) {
      // The server is down or stopping: try again.
      await read().catch(() => delay(100));
    }
  };
  void readOn();
  return blocks;
}

let closed = new AbortController();

/** Ends the background reads; call it in afterAll, before the servers are stopped. */
export function closeConversations(): void {
  closed.abort();
  closed = new AbortController();
}

function textOf({ block }: AgentOutputBlock): string {
  switch (block.case) {
    case "text":
      return block.value.content.trimEnd();
    case "fileChange":
      return `changed ${block.value.path}`;
    case "toolRequest":
      return `asked ${block.value.name}`;
    case "error":
      return `error: ${block.value.message}`;
    default:
      return block.case ?? "";
  }
}
