import type { StreamInputsResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import type { AgentWork_McpServer as McpServer } from "#gen/runner/v1/work_pb.js";
import type { SecretMask, Secrets } from "../../domain/secrets.ts";
import { type CommandResult, describeExit, type RunCommand } from "../process/command.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { AgentFacts } from "./agent-facts.ts";
import type { AgentReporter } from "./agent-reporter.ts";
import type { AgentState } from "./agent-state.ts";

/** An agent's execution in progress, and everything that it is driven with. */
export interface RunningAgent {
  readonly assignment: Assignment;
  readonly program: string;
  readonly args: readonly string[];
  /** The folder that it works in: the first repository, or the empty tree. */
  readonly folder: string;
  /** The folder of all repositories of its environment. */
  readonly tree: string;
  /** The complete environment of its program. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs its program and its commands, kept in. */
  readonly runCommand: RunCommand;
  readonly facts: AgentFacts;
  /** The servers of the Model Context Protocol that it may use. */
  readonly mcpServers: readonly McpServer[];
  readonly state: AgentState;
  readonly report: AgentReporter;
  /** Yields the inputs that the service sends, each once, until the signal is aborted. */
  readonly inputs: (signal: AbortSignal) => AsyncIterable<StreamInputsResponse>;
  /** Ends the execution, with the reason of the lease's signal. */
  readonly signal: AbortSignal;
  /** True if it is for a step of an action, which fails when a turn fails. */
  readonly isStep: boolean;
  /**
   * True if the agent is reported as waiting once its program runs. An execution
   * that waited before keeps waiting for the same; the input of a step's agent is
   * there from the start, so that it waits only when the turn is done.
   */
  readonly becomesReady: boolean;
}

/** Maximum of the program's error output that is reported when it ends, in bytes. */
const MAX_STDERR_BYTES = 4_096;
/** Maximum of the contract for a message, in characters (Failure.message). */
const MAX_MESSAGE_CHARACTERS = 4_096;

/** The end of a program's standard error. */
export class StderrTail {
  readonly #mask: SecretMask;
  /** Masked before it is cut: the rest of a secret is not recognized. */
  #bytes: Buffer = Buffer.alloc(0);

  constructor(secrets: Pick<Secrets, "stream">) {
    this.#mask = secrets.stream();
  }

  add(bytes: Buffer): void {
    this.#keep(this.#mask.write(bytes));
  }

  /**
   * Returns the failure of an execution whose program ended in this way, with the
   * program's last error output, without secrets.
   *
   * @param reason the reason of the failure
   * @param when follows how it ended, such as " too early"
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
