import type { Writable } from "node:stream";
import { ConnectError } from "@connectrpc/connect";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import type { CommandResult } from "../process/command.ts";
import { cut, errorBlock } from "./agent-block.ts";
import { startLine } from "./agent-facts.ts";
import { type InputLine, inputLine } from "./agent-input-encoding.ts";
import { LineReader, type OutputLine } from "./agent-lines.ts";
import { type AgentMessage, parseAgentMessage, type RunMessage } from "./agent-message-parsing.ts";
import type { BlockContent } from "./agent-report.ts";
import { type AgentRun, StderrTail } from "./agent-run.ts";
import { Turns } from "./agent-turns.ts";
import { SubagentManager } from "./subagent-manager.ts";

/** A longer line is none of the form. */
const MOST_LINE_BYTES = 1_048_576;
/** What an agent gets to end after it was told to stop, before it gets SIGTERM. */
const STOP_MS = 2_000;
/** So much of a line is shown that was not understood, in characters. */
const SHOWN_CHARACTERS = 200;
/** A program that writes something else altogether says no more by its other lines. */
const MOST_MISUNDERSTANDINGS = 100;

/**
 * Drives an agent that speaks JSON lines, by docs/agents.md, until its program
 * ends.
 *
 * @throws WorkFailure when it ends otherwise than by itself, in good order and between turns
 * @throws the reason of the run's signal when that ended it
 */
export async function converseInJsonLines(run: AgentRun): Promise<void> {
  const conversation = new JsonConversation(run);
  const onStop = () => conversation.stop();
  const onFailure = () => conversation.end();
  run.signal.addEventListener("abort", onStop);
  run.report.failed.addEventListener("abort", onFailure);
  if (run.signal.aborted) onStop();
  try {
    await conversation.hold();
  } finally {
    run.signal.removeEventListener("abort", onStop);
    run.report.failed.removeEventListener("abort", onFailure);
  }
}

class JsonConversation {
  readonly #run: AgentRun;
  readonly #turns = new Turns();
  readonly #relatives: SubagentManager;
  readonly #complaint = new StderrTail();
  readonly #lines = new LineReader(MOST_LINE_BYTES);
  readonly #stdin = Promise.withResolvers<Writable>();
  /** Aborted when the agent is given no more. */
  readonly #over = new AbortController();
  /** Undefined for a program that was not started. */
  readonly #opened = Promise.race([this.#stdin.promise, aborted(this.#over.signal)]);
  /** Aborted when the program is to be ended. */
  readonly #end = new AbortController();
  #misunderstandings = 0;
  /** Why the run fails, should it come to that. */
  #reason: string | undefined;

  constructor(run: AgentRun) {
    this.#run = run;
    this.#relatives = new SubagentManager(run.assignment.lease, run.facts, (line) => this.#tell(line));
  }

  async hold(): Promise<void> {
    const { report, signal, assignment, isStep } = this.#run;
    const given = this.#give();
    // Whoever waits for it learns of the failure, once the program is gone.
    given.catch(() => this.end());
    let result: CommandResult;
    try {
      result = await this.#runProgram();
    } finally {
      this.#over.abort();
    }
    const rest = this.#lines.end();
    if (rest) await this.#hear(rest);
    await report.flush();
    await given;
    signal.throwIfAborted();
    // A step's agent has something to do before its end.
    const hasDone = !this.#turns.isOpen && (this.#turns.inputId !== "" || !isStep);
    if (result.exit === 0 && hasDone) return;
    throw this.#complaint.failure(result, assignment.secrets, { reason: this.#reason });
  }

  /** Asks the agent to end, and ends it when it does not. */
  stop(): void {
    this.#over.abort();
    setTimeout(() => this.end(), this.#run.assignment.lease.isLost ? 0 : STOP_MS).unref();
    void this.#stdin.promise.then((stdin) => stdin.end(lineOf({ type: "stop" })));
  }

  end(): void {
    this.#end.abort();
  }

  #runProgram(): Promise<CommandResult> {
    const { assignment, program, args, folder, environment } = this.#run;
    return assignment.tools.programs.run({
      program,
      args,
      folder,
      environment,
      signal: this.#end.signal,
      input: (stdin) => this.#stdin.resolve(stdin),
      onOutput: async (bytes, stream) => {
        if (stream === "stderr") return this.#complaint.add(bytes);
        for (const line of this.#lines.write(bytes)) await this.#hear(line);
      },
    });
  }

  /** Gives the agent its inputs, each when it has taken the one before. */
  async #give(): Promise<void> {
    const { facts, state, report, inputs, becomesReady } = this.#run;
    await this.#tell(startLine(facts, await state.countStart()));
    if (this.#over.signal.aborted) return;
    if (becomesReady) report.stand(State.WAITING);
    for await (const handed of inputs(this.#over.signal)) {
      const line = await inputLine(handed, state.keepImage);
      if (this.#turns.give(handed.input?.id ?? "")) report.stand(State.RUNNING);
      await this.#tell(line);
    }
  }

  /** Resolves when the agent can be told more, or is gone. */
  async #tell(line: InputLine): Promise<void> {
    const stdin = await this.#opened;
    if (!stdin || stdin.writableEnded) return;
    await new Promise<void>((resolve) => stdin.write(lineOf(line), () => resolve()));
  }

  /** Resolves when the agent may say more. */
  async #hear(line: OutputLine): Promise<void> {
    if (line.kind === "too-long") {
      this.#misunderstand(`a line of ${line.lengthBytes} bytes was dropped: ${MOST_LINE_BYTES} is the most`);
    } else {
      const text = line.bytes.toString();
      const said = text.trim() === "" ? undefined : this.#understood(text);
      if (said) await this.#act(said);
    }
    await this.#run.report.room();
  }

  #understood(text: string): AgentMessage | undefined {
    const { secrets } = this.#run.assignment;
    try {
      return parseAgentMessage(secrets.maskJson(JSON.parse(text)));
    } catch (error) {
      const shown = cut(secrets.maskText(text), SHOWN_CHARACTERS);
      this.#misunderstand(`a line was not understood, since ${(error as Error).message}: ${shown}`);
      return undefined;
    }
  }

  async #act(said: AgentMessage): Promise<void> {
    const { report } = this.#run;
    switch (said.kind) {
      case "seen":
        if (this.#turns.see(said.inputId)) return report.seen(said.inputId);
        return this.#misunderstand(`an input was confirmed that it was not given: ${cut(said.inputId, 128)}`);
      case "answer":
        for (const block of said.blocks) this.#answer(block);
        return;
      case "error":
        this.#reason = said.reason ?? this.#reason;
        return this.#answer(errorBlock(said.message));
      case "turn-done":
        return this.#endTurn(said);
      case "facts":
        return report.note(said.facts);
      case "subagent":
        return this.#relatives.wish(said.wish);
      case "message":
        return this.#speak(said.message);
    }
  }

  async #speak(message: RunMessage): Promise<void> {
    try {
      await this.#relatives.speak(message);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      this.#answer(errorBlock(`a message to the run ${message.to} was not taken: ${error.rawMessage}`));
    }
  }

  #endTurn({ interests }: Extract<AgentMessage, { kind: "turn-done" }>): void {
    const { report } = this.#run;
    // Only who works comes to wait for something else, such as after a start anew.
    if (!this.#turns.isOpen && interests.length > 0) report.stand(State.RUNNING);
    const next = this.#turns.end();
    if (next === "waits") report.stand(State.WAITING, interests);
    if (next === "unconfirmed") this.#misunderstand("a turn was ended whose input was not confirmed");
  }

  #misunderstand(what: string): void {
    this.#misunderstandings++;
    if (this.#misunderstandings > MOST_MISUNDERSTANDINGS) return;
    const last = this.#misunderstandings === MOST_MISUNDERSTANDINGS ? "; no more of this kind is told" : "";
    this.#answer(errorBlock(`the agent's output breaks its form: ${what}${last}`));
  }

  #answer(block: BlockContent): void {
    this.#run.report.block({ block, inputId: this.#turns.inputId });
  }
}

const lineOf = (line: InputLine) => `${JSON.stringify(line)}\n`;

async function aborted(signal: AbortSignal): Promise<undefined> {
  if (!signal.aborted)
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  return undefined;
}
