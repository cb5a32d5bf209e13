import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  type ReportAgentRequestSchema,
  ReportAgentRequest_State as State,
} from "#gen/runner/v1/agent_work_service_pb.js";
import type { AgentOutputBlockSchema } from "#gen/service/v1/agent_pb.js";
import { connectionProblemOf } from "../protocol/connection.ts";
import { errorBlock } from "./agent-block.ts";

type Request = MessageInitShape<typeof ReportAgentRequestSchema>;

/** What is told of an agent's run at one time. */
export type AgentProgress = Omit<Request, "leaseId" | "fence" | "$typeName" | "$unknown">;

/** What an agent says of itself besides its answer; the newest of each counts. */
export type AgentFacts = Pick<AgentProgress, "usage" | "goalStatus" | "mode" | "currentActivity">;

export type Interest = NonNullable<AgentProgress["interests"]>[number];

/** What a block says. */
export type BlockContent = NonNullable<MessageInitShape<typeof AgentOutputBlockSchema>["block"]>;

/** A block without its number. */
export interface Block {
  /** The input that began the turn it belongs to. */
  readonly inputId?: string;
  readonly block: BlockContent;
}

export interface AgentReportLimits {
  /** Longest wait of a block for others to go with, in milliseconds; 100 when absent. */
  readonly intervalMs?: number;
  /** So many characters go in one report at most, unless a single block has more; 262,144 when absent. */
  readonly reportCharacters?: number;
}

/** As many as the contract takes in one report, less one that may have to say what was refused. */
const MOST_BLOCKS = 63;
/** As many as the contract takes in one report. */
const MOST_SEEN = 64;
/** So many reports wait for their turn before whoever tells more has to. */
const WAITING_REPORTS = 4;

/** A report that has not been sent yet. */
interface Draft {
  readonly seen: string[];
  readonly blocks: Block[];
  characters: number;
  state: State;
  interests: readonly Interest[];
  facts: AgentFacts;
}

/**
 * Collects what happens in an agent's run and tells the service, in order, one
 * report at a time. Blocks are numbered without gaps when they are sent.
 */
export class AgentReport {
  readonly #deliver: (progress: AgentProgress) => Promise<bigint>;
  readonly #intervalMs: number;
  readonly #reportCharacters: number;
  #lastSequence: bigint;
  #drafts: Draft[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #lessWaits = Promise.withResolvers<void>();
  #failure: { readonly cause: unknown } | undefined;
  readonly #failed = new AbortController();

  /**
   * @param deliver sends a report and answers the number of the block that the service took last
   * @param lastSequence number of the block that the service has
   */
  constructor(
    deliver: (progress: AgentProgress) => Promise<bigint>,
    lastSequence: bigint,
    { intervalMs = 100, reportCharacters = 256 * 1_024 }: AgentReportLimits = {},
  ) {
    this.#deliver = deliver;
    this.#lastSequence = lastSequence;
    this.#intervalMs = intervalMs;
    this.#reportCharacters = reportCharacters;
  }

  /** Aborted when nothing is told any more, since `deliver` rejected. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** The agent has got an input. */
  seen(inputId: string): void {
    this.#draft(({ seen }) => seen.length < MOST_SEEN).seen.push(inputId);
    this.#send();
  }

  /** The agent answered something. */
  block(block: Block): void {
    const characters = charactersOf(block);
    const draft = this.#draft(
      (last) =>
        last.blocks.length === 0 ||
        (last.blocks.length < MOST_BLOCKS && last.characters + characters <= this.#reportCharacters),
    );
    draft.blocks.push(block);
    draft.characters += characters;
    this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
  }

  note(facts: AgentFacts): void {
    const draft = this.#draft();
    draft.facts = { ...draft.facts, ...facts };
    this.#timer ??= setTimeout(() => this.#send(), this.#intervalMs);
  }

  /** Where the agent stands from now on, and what it waits for. */
  stand(state: State, interests: readonly Interest[] = []): void {
    // Each move is told by itself: the service knows no others.
    const draft = this.#draft((last) => last.state === State.UNSPECIFIED);
    draft.state = state;
    draft.interests = interests;
    this.#send();
  }

  /**
   * Resolves when there is room for more.
   *
   * @throws what `deliver` rejected with, now or before
   */
  async room(): Promise<void> {
    while (this.#drafts.length > WAITING_REPORTS) await this.#lessWaits.promise;
    this.#throwFailure();
  }

  /**
   * Sends the rest and resolves when all is delivered.
   *
   * @throws what `deliver` rejected with, now or before
   */
  async flush(): Promise<void> {
    while (this.#sending || this.#drafts.length > 0) {
      this.#send();
      await this.#sending;
    }
    clearTimeout(this.#timer);
    this.#throwFailure();
  }

  /** The report that what comes now goes into: nothing goes into one after the agent has come to wait. */
  #draft(fits: (last: Draft) => boolean = () => true): Draft {
    const last = this.#drafts.at(-1);
    if (last && last.state !== State.WAITING && fits(last)) return last;
    const draft = { seen: [], blocks: [], characters: 0, state: State.UNSPECIFIED, interests: [], facts: {} };
    // Nothing is told any more: what is said after a failure must not pile up.
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
        await this.#tell(draft);
        this.#lessWaits.resolve();
        this.#lessWaits = Promise.withResolvers();
      }
    } catch (cause) {
      this.#failure = { cause };
      this.#drafts = [];
      this.#lessWaits.resolve();
      this.#failed.abort();
    }
    this.#sending = undefined;
  }

  /**
   * Where the service refuses what the agent says of itself, or waits for, the
   * rest is told with the refusal in place of it: the words of an agent are not
   * lost for that.
   */
  async #tell({ facts, interests, ...draft }: Draft): Promise<void> {
    const isDispensable = interests.length > 0 || Object.keys(facts).length > 0;
    try {
      await this.#deliverNumbered({ ...draft, facts, interests });
    } catch (error) {
      if (!isDispensable || connectionProblemOf(error) !== "refused") throw error;
      const why = `the service refused what the agent reported: ${ConnectError.from(error).rawMessage}`;
      const blocks = [...draft.blocks, { block: errorBlock(why) }];
      await this.#deliverNumbered({ ...draft, blocks, facts: {}, interests: [] });
    }
  }

  async #deliverNumbered({
    seen,
    blocks,
    state,
    interests,
    facts,
  }: Omit<Draft, "characters">): Promise<void> {
    const first = this.#lastSequence + 1n;
    const last = await this.#deliver({
      ...facts,
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
  const values = Object.values(block.value ?? {});
  return values.reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 0), 0);
}
