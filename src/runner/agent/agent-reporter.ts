import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  type ReportAgentRequestSchema,
  ReportAgentRequest_State as State,
} from "#gen/runner/v1/agent_work_service_pb.js";
import type { AgentOutputBlockSchema } from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { classifyFailure } from "../protocol/connection.ts";
import { errorBlock } from "./agent-block.ts";

type Request = MessageInitShape<typeof ReportAgentRequestSchema>;

/** A report about an agent's execution. */
export type AgentReport = Omit<Request, "leaseId" | "fence" | "$typeName" | "$unknown">;

/** Facts about the agent other than its answer. The latest value of each wins. */
export type AgentUpdate = Pick<
  AgentReport,
  "usage" | "goalStatus" | "mode" | "currentActivity" | "canResume" | "forkAbility"
>;

export type Interest = NonNullable<AgentReport["interests"]>[number];

/** The content of a block. */
export type BlockContent = NonNullable<MessageInitShape<typeof AgentOutputBlockSchema>["block"]>;

/** A block without its number. */
export interface Block {
  /** The input that began the block's turn. */
  readonly inputId?: string;
  readonly block: BlockContent;
}

export interface AgentReporterOptions {
  /** Maximum time that a block is delayed so that it is sent with others, in milliseconds; 100 when absent. */
  readonly intervalMs?: number;
  /** Maximum number of characters in a report, unless a single block has more; 262,144 when absent. */
  readonly reportCharacters?: number;
  /** Called with each state of the agent. */
  readonly onState?: (state: State) => void;
}

/** The contract's maximum number of blocks in a report, less one for an error block that explains a refusal. */
const MAX_BLOCKS = 63;
/** The contract's maximum number of seen inputs in a report. */
const MAX_SEEN = 64;
/** Number of reports that may be queued before the caller has to wait. */
const MAX_WAITING_REPORTS = 4;

/** A report that has not been sent yet. */
interface Draft {
  readonly seen: string[];
  readonly blocks: Block[];
  characters: number;
  environment?: AgentReport["environment"];
  state: State;
  interests: readonly Interest[];
  facts: AgentUpdate;
}

/**
 * Collects the events of an agent's execution and reports them to the service in order, one report at a time.
 * Numbers the blocks without gaps when it sends them.
 */
export class AgentReporter {
  readonly #deliver: (progress: AgentReport) => Promise<bigint>;
  readonly #intervalMs: number;
  readonly #reportCharacters: number;
  readonly #onState: (state: State) => void;
  #lastSequence: bigint;
  #drafts: Draft[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #progressed = Promise.withResolvers<void>();
  #failure: { readonly cause: unknown } | undefined;
  readonly #failed = new AbortController();

  /**
   * @param deliver sends a report and returns the number of the last block that the service has accepted
   * @param lastSequence number of the last block that the service has
   */
  constructor(
    deliver: (progress: AgentReport) => Promise<bigint>,
    lastSequence: bigint,
    { intervalMs = 100, reportCharacters = 256 * 1_024, onState = () => {} }: AgentReporterOptions = {},
  ) {
    this.#deliver = deliver;
    this.#lastSequence = lastSequence;
    this.#intervalMs = intervalMs;
    this.#reportCharacters = reportCharacters;
    this.#onState = onState;
  }

  /** Returns a signal that is aborted when reporting ends because `deliver` rejected. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** Records that the agent has received an input. */
  seen(inputId: string): void {
    this.#draft(({ seen }) => seen.length < MAX_SEEN).seen.push(inputId);
    this.#send();
  }

  /** Adds a block of the agent's answer. */
  block(block: Block): void {
    const characters = charactersOf(block);
    const draft = this.#draft(
      (last) =>
        last.blocks.length === 0 ||
        (last.blocks.length < MAX_BLOCKS && last.characters + characters <= this.#reportCharacters),
    );
    draft.blocks.push(block);
    draft.characters += characters;
    this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
  }

  /** Records that the environment is running. This is sent with the next report. */
  environmentIsRunning(): void {
    this.#draft().environment = { phase: EnvironmentPhase.RUNNING };
    this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
  }

  update(facts: AgentUpdate): void {
    const draft = this.#draft();
    draft.facts = { ...draft.facts, ...facts };
    this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
  }

  /** Records the agent's new state and the events that it waits for. */
  setState(state: State, interests: readonly Interest[] = []): void {
    // Each transition needs its own report, since a report carries a single state.
    const draft = this.#draft((last) => last.state === State.UNSPECIFIED);
    draft.state = state;
    draft.interests = interests;
    this.#send();
    this.#onState(state);
  }

  /**
   * Resolves when the queue has room for more.
   *
   * @throws the error that `deliver` rejected with, now or before
   */
  async waitForRoom(): Promise<void> {
    while (this.#drafts.length > MAX_WAITING_REPORTS) await this.#progressed.promise;
    this.#throwFailure();
  }

  /**
   * Sends everything that is queued; resolves when it has been delivered.
   *
   * @throws the error that `deliver` rejected with, now or before
   */
  async flush(): Promise<void> {
    while (this.#sending || this.#drafts.length > 0) {
      this.#send();
      await this.#sending;
    }
    clearTimeout(this.#timer);
    this.#throwFailure();
  }

  /** Returns the draft for new content. A draft that says that the agent waits takes no more content. */
  #draft(fits: (last: Draft) => boolean = () => true): Draft {
    const last = this.#drafts.at(-1);
    if (last && last.state !== State.WAITING && fits(last)) return last;
    const draft: Draft = {
      seen: [],
      blocks: [],
      characters: 0,
      state: State.UNSPECIFIED,
      interests: [],
      facts: {},
    };
    // After a failure nothing is sent, so drafts must not accumulate.
    if (!this.#failure) this.#drafts.push(draft);
    return draft;
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#drafts.length > 0) this.#sending ??= this.#sendDrafts();
  }

  async #sendDrafts(): Promise<void> {
    try {
      for (let draft = this.#drafts.shift(); draft; draft = this.#drafts.shift()) {
        await this.#sendDraft(draft);
        this.#progressed.resolve();
        this.#progressed = Promise.withResolvers();
      }
    } catch (cause) {
      this.#failure = { cause };
      this.#drafts = [];
      this.#progressed.resolve();
      this.#failed.abort();
    }
    this.#sending = undefined;
  }

  /**
   * Sends a report. If the service refuses it and it has facts or interests, sends it once more with an error block
   * in their place, so that the agent's output is not lost.
   */
  async #sendDraft({ facts, interests, ...draft }: Draft): Promise<void> {
    const isDispensable = interests.length > 0 || Object.keys(facts).length > 0;
    try {
      await this.#deliverNumbered({ ...draft, facts, interests });
    } catch (error) {
      if (!isDispensable || classifyFailure(error) !== "refused") throw error;
      const why = `the service refused what the agent reported: ${ConnectError.from(error).rawMessage}`;
      const blocks = [...draft.blocks, { block: errorBlock(why) }];
      await this.#deliverNumbered({ ...draft, blocks, facts: {}, interests: [] });
    }
  }

  async #deliverNumbered({
    seen,
    blocks,
    environment,
    state,
    interests,
    facts,
  }: Omit<Draft, "characters">): Promise<void> {
    const first = this.#lastSequence + 1n;
    const last = await this.#deliver({
      ...facts,
      ...(environment && { environment }),
      seenInputIds: [...seen],
      blocks: blocks.map((block, at) => ({ ...block, sequence: first + BigInt(at) })),
      state,
      interests: [...interests],
    });
    this.#lastSequence = last;
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.cause;
  }
}

function charactersOf({ block }: Block): number {
  return charactersIn(block.value);
}

function charactersIn(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, each) => sum + charactersIn(each), 0);
}
