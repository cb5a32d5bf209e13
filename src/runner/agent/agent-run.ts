import type { StreamInputsResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import { type CommandResult, howItEnded } from "../process/command.ts";
import type { Secrets } from "../process/secrets.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { AgentFacts } from "./agent-facts.ts";
import type { AgentReport } from "./agent-report.ts";
import type { AgentState } from "./agent-state.ts";

/** An agent's run that is under way, and all that it is driven with. */
export interface AgentRun {
  readonly assignment: Assignment;
  readonly program: string;
  readonly args: readonly string[];
  /** Where it works: the first repository, or the empty tree. */
  readonly folder: string;
  /** All of the environment of its program. */
  readonly environment: Readonly<Record<string, string>>;
  readonly facts: AgentFacts;
  readonly state: AgentState;
  readonly report: AgentReport;
  /** The run's inputs as the service hands them out, each once, until the signal is aborted. */
  readonly inputs: (signal: AbortSignal) => AsyncIterable<StreamInputsResponse>;
  /** Ends it, with the reason of the lease's signal. */
  readonly signal: AbortSignal;
  /** Whether it is for a step of an action, which fails when a turn does. */
  readonly isStep: boolean;
  /**
   * Whether it is to be told that the agent waits, once its program is there. A
   * run that waited before goes on waiting for the same; what a step's agent is to
   * do is there from the start, so that it waits when it has done it.
   */
  readonly becomesReady: boolean;
}

/** So much is told of what a program complained about before it ended, in bytes. */
const COMPLAINT_BYTES = 4_096;
/** Characters that the contract takes of a message (Failure.message). */
const MOST_MESSAGE_CHARACTERS = 4_096;

/** The end of what a program wrote to its standard error. */
export class StderrTail {
  /** Twice as much as is told, so that a secret where it begins is masked too. */
  #bytes: Buffer = Buffer.alloc(0);

  add(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]).subarray(-2 * COMPLAINT_BYTES);
  }

  /**
   * Why a run failed whose program ended so, with what that complained about,
   * without secrets.
   *
   * @param reason the word for it
   * @param when follows how it ended, such as " too early"
   */
  failure(
    result: CommandResult,
    secrets: Secrets,
    {
      reason = "agent_failed",
      when = "",
    }: { readonly reason?: string | undefined; readonly when?: string } = {},
  ): WorkFailure {
    const text = secrets.mask(this.#bytes).subarray(-COMPLAINT_BYTES).toString().trim();
    const head = `the agent's program ${howItEnded(result)}${when}`;
    if (text === "") return new WorkFailure(reason, head);
    const roomCharacters = MOST_MESSAGE_CHARACTERS - head.length - 2;
    return new WorkFailure(reason, `${head}: ${text.slice(-roomCharacters)}`);
  }
}
