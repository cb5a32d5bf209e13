import type { TraceParent } from "./trace/trace-context.ts";

/** Upper bounds for durations of calls and commits, in seconds. */
export const DURATION_BOUNDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

/** Counts values by buckets. Recording a value changes only two numbers. */
export class Histogram {
  /** Upper bounds of the buckets, ascending; larger values have a bucket of their own. */
  readonly bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[] = DURATION_BOUNDS) {
    this.bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  record(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
    (this.#counts[bucket] as number)++;
    this.#sum += value;
  }

  /** Returns the number of values in each bucket, one more than there are bounds. */
  get counts(): readonly number[] {
    return this.#counts;
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.#counts.reduce((all, count) => all + count, 0);
  }
}

/** An event of a resource that is counted when the write that did it is committed. */
export interface Outcome {
  readonly of:
    | "action"
    | "workflow execution"
    | "agent execution"
    | "agent turn"
    | "trigger event"
    | "event delivery"
    | "isolation refusal";
  /** The phase in which it ended, the verdict, or the reason: the name of a value of an enum of the contract. */
  readonly as: string;
  /** The thing that it happened to, for its trace. */
  readonly subject?: TracedSubject;
}

/** Something that has ended, whose spans are to be sent. */
export interface TracedSubject {
  readonly organizationId: string;
  readonly id: string;
  /** When it ended, in milliseconds since 1970 UTC. */
  readonly at: number;
  /** The turn that ended, of an agent execution: the places of its inputs in the order of delivery. */
  readonly turn?: { readonly after: number; readonly through: number };
}

/** The traces of a server that sends some. */
export interface Traces {
  /** Returns the place in its trace of something with a UUID that begins one. */
  begin(uuid: string): TraceParent;
  /** Receives the outcomes of a commit. It never throws, and does not block. */
  ended(outcomes: readonly Outcome[]): void;
}

/** The size of a store, in bytes. */
export interface StoreSize {
  readonly data: number;
  /** Size of the log of changes that are not in the data yet; absent if the engine shares it between databases. */
  readonly log?: number;
}

/** The counts of a store since it was opened, for the metrics of its process. */
export class StoreMeasures {
  /** Returns the size of the whole database. */
  readonly size: () => Promise<StoreSize>;
  /** Time from the beginning of a group of writes to its commit, in seconds. */
  readonly commitSeconds = new Histogram();
  /** Number of writes per commit. */
  readonly commitWrites = new Histogram([1, 2, 4, 8, 16, 32, 64, 128, 256]);
  /** Time for which a group of writes waited for its locks, in seconds; empty if there is only one writer. */
  readonly lockWaitSeconds = new Histogram();
  /** Set by a server that sends traces. */
  traces: Traces | undefined;
  readonly #outcomes = new Map<Outcome["of"], Map<string, number>>();

  constructor(size: () => Promise<StoreSize>) {
    this.size = size;
  }

  commit(writes: number, milliseconds: number, outcomes: readonly Outcome[]): void {
    this.commitSeconds.record(milliseconds / 1000);
    this.commitWrites.record(writes);
    if (outcomes.length > 0) this.traces?.ended(outcomes);
    for (const { of, as } of outcomes) {
      const counts = this.#outcomes.get(of) ?? new Map<string, number>();
      this.#outcomes.set(of, counts.set(as, (counts.get(as) ?? 0) + 1));
    }
  }

  /** Returns how often each thing happened to such resources. */
  outcomes(of: Outcome["of"]): ReadonlyMap<string, number> {
    return this.#outcomes.get(of) ?? new Map();
  }
}
