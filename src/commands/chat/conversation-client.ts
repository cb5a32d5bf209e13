import { randomBytes } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  type AgentControlInputSchema,
  type AgentInput,
  AgentInputReceipt,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import { AgentService, type WatchAgentExecutionResponse } from "#gen/service/v1/agent_service_pb.js";
import { backOffMs, pause } from "../../runner/protocol/back-off.ts";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { failureOf, isTemporary, messageOf, optionsOf } from "../client/call.ts";
import type { ServerAccess } from "../client/server-access.ts";
import { ExitCode, StartError } from "../start-error.ts";

type Control = MessageInitShape<typeof AgentControlInputSchema>["control"];

const PAGE = 100;

/** Maximum pause between two attempts, in milliseconds: a person is waiting. */
const MAX_PAUSE_MS = 5_000;

/** Receives the connection's state as a sentence. */
export type Notify = (text: string) => void;

export interface ConversationOptions extends ServerAccess {
  readonly agentExecutionId: string;
  /** Number of the block after which to read output; undefined to start at the beginning. */
  readonly earlierSequence?: bigint | undefined;
  /** How long to retry an unreachable server, in milliseconds. */
  readonly retryForMs: number;
}

/** Sends inputs to one agent's execution and reads its output. */
export class ConversationClient {
  readonly #client: Client<typeof AgentService>;
  readonly #agentExecutionId: string;
  readonly #access: ServerAccess;
  readonly #retryForMs: number;
  /** Number of the last block that was yielded. */
  #sequence: bigint;
  /** Number of the last block that existed when the current connection started. */
  #reachedSequence = 0n;
  isUnreachable = false;

  constructor({ agentExecutionId, earlierSequence, retryForMs, ...access }: ConversationOptions) {
    this.#client = createClient(AgentService, createHttpTransport(access.server));
    this.#agentExecutionId = agentExecutionId;
    this.#access = access;
    this.#retryForMs = retryForMs;
    this.#sequence = earlierSequence ?? 0n;
  }

  /** Returns whether the last attempt failed to reach the server. */
  get isAway(): boolean {
    return this.isUnreachable;
  }

  /** Returns whether blocks from before the current connection are still to come. */
  get isCatchingUp(): boolean {
    return this.#sequence < this.#reachedSequence;
  }

  /**
   * Sends a message.
   * @returns its id in the queue
   */
  async sendMessage(text: string): Promise<string> {
    const id = randomBytes(4).toString("hex");
    const inputs = [{ input: { case: "text" as const, value: { content: text } } }];
    await this.#send({ case: "userInput", value: { id, inputs } });
    return id;
  }

  async sendControl(control: NonNullable<Control>): Promise<void> {
    await this.#send({ case: "controlInput", value: { control } });
  }

  async stop(): Promise<void> {
    await this.#client.stopAgentExecution({ agentExecutionId: this.#agentExecutionId }, this.#options());
  }

  /** Lists the queued inputs in order of delivery; with `all`, lists all sent inputs in order of arrival. */
  inputs(all: boolean): Promise<AgentInput[]> {
    return this.#inputsOf(this.#agentExecutionId, all);
  }

  /** Lists the inputs of the executions that this one continues, newest execution first. */
  async earlierInputs(): Promise<AgentInput[]> {
    const inputs: AgentInput[] = [];
    for (let agentExecutionId = this.#agentExecutionId; ; ) {
      const { agentExecution } = await this.#client.getAgentExecution({ agentExecutionId }, this.#options());
      const { resumedFrom = "", forkedFrom = "" } = agentExecution?.metadata ?? {};
      agentExecutionId = resumedFrom || forkedFrom;
      if (agentExecutionId === "") return inputs;
      try {
        inputs.push(...(await this.#inputsOf(agentExecutionId, true)));
      } catch (error) {
        // It was deleted, or the caller may not see it.
        if (ConnectError.from(error).code === Code.NotFound) return inputs;
        throw error;
      }
    }
  }

  async #inputsOf(agentExecutionId: string, all: boolean): Promise<AgentInput[]> {
    const inputs: AgentInput[] = [];
    const asked = { agentExecutionId, includePast: all };
    for (let token = ""; ; ) {
      const pagination = { pageSize: PAGE, token };
      const page = await this.#client.listAgentInputs({ ...asked, pagination }, this.#options());
      inputs.push(...page.inputs);
      token = page.pagination?.nextToken ?? "";
      if (token === "") return inputs;
    }
  }

  /**
   * Returns the id of the queued message with this prefix.
   * @throws StartError when none or more than one has it
   */
  async queuedId(beginning: string): Promise<string> {
    const ids = (await this.inputs(false)).map(({ id }) => id).filter((id) => id.startsWith(beginning));
    const [id] = ids;
    if (id === undefined) throw new StartError(`no message in the queue has an id that begins ${beginning}`);
    if (ids.length > 1 && !ids.includes(beginning)) {
      throw new StartError(`more than one message in the queue has an id that begins ${beginning}`);
    }
    return ids.includes(beginning) ? beginning : id;
  }

  /**
   * Returns whether the agent has answered everything, is waiting for input, and its answers were yielded; false
   * while the server is unreachable. Reads the inputs first, then the run, and the output last: the run's state
   * reflects every input that the agent has received.
   */
  async hasAnsweredAll(): Promise<boolean> {
    const open: readonly AgentInputReceipt[] = [AgentInputReceipt.QUEUED, AgentInputReceipt.DELIVERED];
    const asked = { agentExecutionId: this.#agentExecutionId };
    try {
      const inputs = await this.inputs(true);
      if (inputs.some(({ receipt }) => open.includes(receipt))) return false;
      const { agentExecution } = await this.#client.getAgentExecution(asked, this.#options());
      if (agentExecution?.status?.phase !== Phase.WAITING_FOR_INPUT) return false;
      return (await this.#lastSequence(this.#options())) <= this.#sequence;
    } catch (error) {
      if (isTemporary(error)) return false;
      throw error;
    }
  }

  /** Returns the number of the execution's last block. */
  async #lastSequence(options: CallOptions): Promise<bigint> {
    const output = { agentExecutionId: this.#agentExecutionId, pagination: { pageSize: 1 } };
    return (await this.#client.listAgentOutputBlocks(output, options)).lastSequence;
  }

  /**
   * Yields the events of the execution from beginning to end. Reopens a broken connection and continues there. Calls
   * `note` when that fails, and again when the server is back.
   *
   * @throws StartError when the execution cannot be watched, or the server was unreachable for too long
   */
  async *watch(
    signal: AbortSignal,
    note: Notify,
  ): AsyncGenerator<NonNullable<WatchAgentExecutionResponse["news"]>, void> {
    let hasStopped = false;
    let reachedAt = performance.now();
    // The first break is not reported: the next attempt may succeed at once.
    for (let failures = 2; !signal.aborted; failures++) {
      const asked = { agentExecutionId: this.#agentExecutionId, afterSequence: this.#sequence };
      try {
        let isFirst = true;
        for await (const { news: event } of this.#client.watchAgentExecution(asked, this.#options(signal))) {
          failures = 0;
          reachedAt = performance.now();
          if (this.isUnreachable) note(`the server ${this.#access.server} is back`);
          this.isUnreachable = false;
          if (event.case === "block") this.#sequence = event.value.sequence;
          if (event.case === "agentExecution") hasStopped = event.value.status?.phase === Phase.STOPPED;
          // The stream sends the run first, then its earlier blocks. If their last number cannot be read, continue
          // without it.
          if (isFirst)
            this.#reachedSequence = await this.#lastSequence(this.#options(signal)).catch(() => 0n);
          isFirst = false;
          yield event;
        }
        // A server that shuts down also ends its streams.
        if (hasStopped) return;
      } catch (error) {
        if (signal.aborted) return;
        if (!isTemporary(error)) throw failureOf(error, this.#access);
        if (failures > 0) this.#noteAway(messageOf(error), reachedAt, note);
      }
      // The server was reachable until now, even if the agent was silent for long.
      if (failures === 0) reachedAt = performance.now();
      await pause(Math.min(backOffMs(Math.max(1, failures)), MAX_PAUSE_MS), signal);
    }
  }

  /**
   * Reports a failed attempt.
   * @throws StartError when the limit has passed
   */
  #noteAway(why: string, reachedAt: number, note: Notify): void {
    const seconds = Math.round(this.#retryForMs / 1_000);
    const text = `the server ${this.#access.server} cannot be reached (${why})`;
    if (performance.now() - reachedAt >= this.#retryForMs) {
      throw new StartError(
        `${text}, for ${seconds} seconds now: the run may go on without you; try again later`,
        { exitCode: ExitCode.unavailable },
      );
    }
    if (!this.isUnreachable) note(`${text}; trying again for ${seconds} seconds`);
    this.isUnreachable = true;
  }

  async #send(input: NonNullable<SendInput>): Promise<void> {
    const request = { agentExecutionId: this.#agentExecutionId, input };
    await this.#client.sendToAgentExecution(request, this.#options());
  }

  #options(signal?: AbortSignal): CallOptions {
    return { ...optionsOf(this.#access), ...(signal && { signal }) };
  }
}

type SendInput = Parameters<Client<typeof AgentService>["sendToAgentExecution"]>[0]["input"];
