import type { StreamInputsResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import type { AgentWork_McpServer as McpServer } from "#gen/runner/v1/work_pb.js";
import type { SecretMask, Secrets } from "../../domain/secrets.ts";
import { type CommandResult, describeExit, type RunCommand } from "../process/command.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { AgentFacts } from "./agent-facts.ts";
import type { AgentReporter } from "./agent-reporter.ts";
import type { AgentState } from "./agent-state.ts";

/** A running agent execution, and everything that its driver needs. */
export interface RunningAgent {
  readonly assignment: Assignment;
  readonly program: string;
  readonly args: readonly string[];
  /** The folder that it works in: the first repository, or the tree when there is none. */
  readonly folder: string;
  /** The folder that holds all repositories of its environment. */
  readonly tree: string;
  /** The complete environment of its program. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs its program and its commands inside the isolation. */
  readonly runCommand: RunCommand;
  readonly facts: AgentFacts;
  /** The Model Context Protocol servers that it may use. */
  readonly mcpServers: readonly McpServer[];
  readonly state: AgentState;
  readonly report: AgentReporter;
  /** Yields the inputs that the service sends, each once, until the signal is aborted. */
  readonly inputs: (signal: AbortSignal) => AsyncIterable<StreamInputsResponse>;
  /** Aborted to end the execution, with the reason of the lease's signal. */
  readonly signal: AbortSignal;
  /** True if it runs for a step of an action. It then fails when a turn fails. */
  readonly isStep: boolean;
  /**
   * True if the agent is reported as waiting once its program runs. False for an execution that already waits, and
   * for a step's agent: its input is there from the start, and it waits only after its turn.
   */
  readonly becomesReady: boolean;
}

/** Maximum size of the program's error output that is reported when it exits, in bytes. */
const MAX_STDERR_BYTES = 4_096;
/** The contract's maximum length of a message, in characters (Failure.message). */
const MAX_MESSAGE_CHARACTERS = 4_096;

/** The end of a program's standard error. */
export class StderrTail {
  readonly #mask: SecretMask;
  /** Masked before it is truncated, since a truncated secret would not be recognized. */
  #bytes: Buffer = Buffer.alloc(0);

  constructor(secrets: Pick<Secrets, "stream">) {
    this.#mask = secrets.stream();
  }

  add(bytes: Buffer): void {
    this.#keep(this.#mask.write(bytes));
  }

  /**
   * Returns the failure for a program that exited with this result. The message contains the program's last error
   * output, without secrets.
   *
   * @param reason the reason of the failure
   * @param when is appended to the description of the exit, for example " too early"
   */
  failure(
    result: CommandResult,
    {
      reason = "agent_failed",
      when = "",
    }: { readonly reason?: string | undefined; readonly when?: string } = {},
  ): WorkFailure {
    this.#keep(this.#mask.end());
    const text = this.#bytes.toString().trim();
    const head = `the agent's program ${describeExit(result)}${when}`;
    if (text === "") return new WorkFailure(reason, head);
    const remainingCharacters = MAX_MESSAGE_CHARACTERS - head.length - 2;
    return new WorkFailure(reason, `${head}: ${text.slice(-remainingCharacters)}`);
  }

  #keep(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]).subarray(-MAX_STDERR_BYTES);
  }
}
