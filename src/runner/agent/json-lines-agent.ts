import type { Writable } from "node:stream";
import type { JsonValue } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import { isJsonObject } from "../../domain/json-object.ts";
import type { CommandResult } from "../process/command.ts";
import { errorBlock, truncate } from "./agent-block.ts";
import { startLine } from "./agent-facts.ts";
import { approvalAnswerLine, type InputLine, inputLine } from "./agent-input-encoding.ts";
import { type AgentMessage, type OutgoingMessage, parseAgentMessage } from "./agent-message-parsing.ts";
import type { BlockContent } from "./agent-reporter.ts";
import { Turns } from "./agent-turns.ts";
import { type ApprovalRequest, ApprovalRequests } from "./approval-requests.ts";
import { LineReader, type OutputLine } from "./line-reader.ts";
import { InvalidAgentLine } from "./line-values.ts";
import { type RunningAgent, StderrTail } from "./running-agent.ts";
import { StreamedTextMask } from "./streamed-text-mask.ts";
import { SubagentManager } from "./subagent-manager.ts";

/** A longer line is invalid. */
const MAX_LINE_BYTES = 1_048_576;
/** Time that an agent gets to exit after the stop line, before SIGTERM. */
const STOP_MS = 2_000;
/** Number of characters of an unreadable line that an error shows. */
const MAX_SHOWN_CHARACTERS = 200;
/** Maximum number of invalid lines that are reported. A program that writes more probably uses another format. */
const MAX_UNREADABLE_LINES = 100;

/**
 * Drives an agent that speaks JSON lines (docs/agents.md) until its program exits.
 *
 * @throws WorkFailure unless the program exits by itself, successfully and between turns
 * @throws the reason of the execution's signal when the signal ended the program
 */
export async function driveJsonLinesAgent(agent: RunningAgent): Promise<void> {
  const conversation = new JsonConversation(agent);
  const onStop = () => conversation.stop();
  const onFailure = () => conversation.end();
  agent.signal.addEventListener("abort", onStop);
  agent.report.failed.addEventListener("abort", onFailure);
  if (agent.signal.aborted) onStop();
  try {
    await conversation.converse();
  } finally {
    agent.signal.removeEventListener("abort", onStop);
    agent.report.failed.removeEventListener("abort", onFailure);
  }
}

class JsonConversation {
  readonly #agent: RunningAgent;
  readonly #turns = new Turns();
  readonly #subagents: SubagentManager;
  readonly #approvals: ApprovalRequests;
  readonly #stderr: StderrTail;
  readonly #text: StreamedTextMask;
  readonly #lines = new LineReader(MAX_LINE_BYTES);
  readonly #stdin = Promise.withResolvers<Writable>();
  /** Aborted when the agent receives no more input. */
  readonly #inputEnd = new AbortController();
  /** The program's standard input; undefined if the input ends before the program has started. */
  readonly #opened = Promise.race([this.#stdin.promise, aborted(this.#inputEnd.signal)]);
  /** Aborted to end the program. */
  readonly #end = new AbortController();
  #unreadableLines = 0;
  /** The failure reason that the agent named, used if the execution fails. */
  #reason: string | undefined;

  constructor(agent: RunningAgent) {
    this.#agent = agent;
    this.#stderr = new StderrTail(agent.assignment.secrets);
    this.#text = new StreamedTextMask(agent.assignment.secrets, (block) => this.#report(block));
    this.#approvals = new ApprovalRequests(agent.assignment.lease);
    this.#subagents = new SubagentManager(agent.assignment.lease, agent.facts, (line) =>
      this.#writeLine(line),
    );
  }

  async converse(): Promise<void> {
    const { report, signal, isStep } = this.#agent;
    const sending = this.#sendInputs();
    // The await below reports the failure once the program has exited.
    sending.catch(() => this.end());
    let result: CommandResult;
    try {
      result = await this.#runProgram();
    } finally {
      this.#inputEnd.abort();
    }
    const rest = this.#lines.end();
    if (rest) await this.#handleLine(rest);
    this.#text.end();
    await report.flush();
    await sending;
    signal.throwIfAborted();
    // A step's agent must complete a turn before it exits.
    const hasDone = !this.#turns.isOpen && (this.#turns.inputId !== "" || !isStep);
    if (result.exit === 0 && hasDone) return;
    throw this.#stderr.failure(result, { reason: this.#reason });
  }

  /** Asks the agent to exit, and kills it when it does not. */
  stop(): void {
    this.#inputEnd.abort();
    setTimeout(() => this.end(), this.#agent.assignment.lease.isLost ? 0 : STOP_MS).unref();
    void this.#stdin.promise.then((stdin) => stdin.end(lineOf({ type: "stop" })));
  }

  end(): void {
    this.#end.abort();
  }

  #runProgram(): Promise<CommandResult> {
    const { runCommand, program, args, folder, environment } = this.#agent;
    return runCommand({
      program,
      args,
      folder,
      environment,
      signal: this.#end.signal,
      input: (stdin) => this.#stdin.resolve(stdin),
      onOutput: async (bytes, stream) => {
        if (stream === "stderr") return this.#stderr.add(bytes);
        for (const line of this.#lines.write(bytes)) await this.#handleLine(line);
      },
    });
  }

  /** Sends the agent its inputs, each after the previous one was written. */
  async #sendInputs(): Promise<void> {
    const { facts, state, report, inputs, becomesReady } = this.#agent;
    await this.#writeLine(startLine(facts, await state.countStart()));
    if (this.#inputEnd.signal.aborted) return;
    if (becomesReady) report.setState(State.WAITING);
    for await (const handed of inputs(this.#inputEnd.signal)) {
      if (this.#approvals.take(handed.input)) {
        report.seen(handed.input?.id ?? "");
        continue;
      }
      const line = await inputLine(handed, state.storeImage);
      if (this.#turns.addInput(handed.input?.id ?? "")) report.setState(State.RUNNING);
      await this.#writeLine(line);
    }
  }

  /** Writes a line; resolves when it is written or the agent is gone. */
  async #writeLine(line: InputLine): Promise<void> {
    const stdin = await this.#opened;
    if (!stdin || stdin.writableEnded) return;
    await new Promise<void>((resolve) => stdin.write(lineOf(line), () => resolve()));
  }

  /** Handles a line; resolves when the next one may be handled. */
  async #handleLine(line: OutputLine): Promise<void> {
    if (line.kind === "too-long") {
      this.#reportUnreadable(
        `a line of ${line.lengthBytes} bytes was dropped: ${MAX_LINE_BYTES} is the most`,
      );
    } else {
      const text = line.bytes.toString();
      const message = text.trim() === "" ? undefined : this.#parse(text);
      if (message) await this.#handle(message);
    }
    await this.#agent.report.waitForRoom();
  }

  #parse(text: string): AgentMessage | undefined {
    const { secrets } = this.#agent.assignment;
    try {
      const line = parseJson(text);
      // StreamedTextMask masks text, since a secret may span several lines.
      return parseAgentMessage(isWords(line) ? line : secrets.maskJson(line));
    } catch (error) {
      const shown = truncate(secrets.maskText(text), MAX_SHOWN_CHARACTERS);
      this.#reportUnreadable(`a line was not understood, since ${(error as Error).message}: ${shown}`);
      return undefined;
    }
  }

  async #handle(said: AgentMessage): Promise<void> {
    const { report } = this.#agent;
    switch (said.kind) {
      case "seen":
        if (this.#turns.confirmInput(said.inputId)) return report.seen(said.inputId);
        return this.#reportUnreadable(
          `an input was confirmed that it was not given: ${truncate(said.inputId, 128)}`,
        );
      case "answer":
        for (const block of said.blocks) this.#addBlock(block);
        return;
      case "error":
        this.#reason = said.reason ?? this.#reason;
        return this.#addBlock(errorBlock(said.message));
      case "turn-done":
        return this.#endTurn(said);
      case "facts":
        return report.update(said.facts);
      case "subagent":
        return this.#subagents.request(said.request);
      case "message":
        return this.#sendMessage(said.message);
      case "approval":
        // Other lines are handled in the meantime. This rejects only when the lease is lost, which ends the execution.
        void this.#ask(said.request).catch(() => undefined);
        return;
    }
  }

  async #sendMessage(message: OutgoingMessage): Promise<void> {
    try {
      await this.#subagents.send(message);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      this.#addBlock(errorBlock(`a message to the run ${message.to} was not taken: ${error.rawMessage}`));
    }
  }

  async #ask(request: ApprovalRequest): Promise<void> {
    const answer = await this.#approvals.ask(request);
    await this.#writeLine(approvalAnswerLine(request, answer));
  }

  #endTurn({ interests }: Extract<AgentMessage, { kind: "turn-done" }>): void {
    const { report } = this.#agent;
    this.#text.end();
    // Only a running agent can start to wait for other events, for example after a restart.
    if (!this.#turns.isOpen && interests.length > 0) report.setState(State.RUNNING);
    const next = this.#turns.end();
    if (next === "waits") report.setState(State.WAITING, interests);
    if (next === "unconfirmed") this.#reportUnreadable("a turn was ended whose input was not confirmed");
  }

  #reportUnreadable(what: string): void {
    this.#unreadableLines++;
    if (this.#unreadableLines > MAX_UNREADABLE_LINES) return;
    const last = this.#unreadableLines === MAX_UNREADABLE_LINES ? "; no more of this kind is reported" : "";
    this.#addBlock(errorBlock(`the agent's output breaks its form: ${what}${last}`));
  }

  #addBlock(block: BlockContent): void {
    if (this.#text.take(block)) return;
    this.#text.end();
    this.#report(block);
  }

  #report(block: BlockContent): void {
    this.#agent.report.block({ block, inputId: this.#turns.inputId });
  }
}

/** The types of lines whose words continue the words of previous lines. */
const WORDS: readonly unknown[] = ["text", "thought"];

function isWords(line: JsonValue): boolean {
  return isJsonObject(line) && WORDS.includes(line.type);
}

/** Parses JSON without the engine's error, which quotes the text. */
function parseJson(text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidAgentLine("it is no JSON");
  }
}

const lineOf = (line: InputLine) => `${JSON.stringify(line)}\n`;

async function aborted(signal: AbortSignal): Promise<undefined> {
  if (!signal.aborted)
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  return undefined;
}
