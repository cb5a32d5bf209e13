/**
 * Time that one write of a job may take, in milliseconds: others wait for it. A quarter of what is promised, for what
 * varies: the next rows have more to remove, the engine or the machine has something else to do.
 */
const WRITE_MS = 5;

/** By how much the next write grows after a short one. */
const GROWTH = 1.25;

/** The share of the most with which a job begins, before it knows how fast the database is. */
const FIRST_SHARE = 1 / 8;

/** The share of the most that the next write of a job takes, by the time that the last one took. */
export class BatchSize {
  #share = FIRST_SHARE;

  /** Returns the share of a number, at least 1. */
  of(most: number): number {
    return Math.max(1, Math.floor(most * this.#share));
  }

  /** Runs one write with the present size, and learns from the time that it took. */
  async measure<T>(run: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await run();
    } finally {
      this.took(performance.now() - began);
    }
  }

  /** Learns from a write of the present size: half at most where it took too long, a little more where it was short. */
  took(ms: number): void {
    if (ms > WRITE_MS) this.#share *= Math.min(1 / 2, WRITE_MS / ms);
    else if (ms < WRITE_MS / 2) this.#share = Math.min(1, this.#share * GROWTH);
    this.#share = Math.max(this.#share, 1e-3);
  }
}

/** A size for each kind of row: some take much longer than others. */
export class BatchSizes {
  readonly #sizes = new Map<string, BatchSize>();

  of(kind: string): BatchSize {
    const size = this.#sizes.get(kind) ?? new BatchSize();
    this.#sizes.set(kind, size);
    return size;
  }
}

/** Returns how many of the next have a sum that may go together: at least one, which is never divided. */
export function portionOf(
  sizes: readonly number[],
  most: { readonly count: number; readonly sum: number },
): number {
  let sum = 0;
  const end = sizes.findIndex((size, place) => {
    sum += size;
    return place > 0 && (place >= most.count || sum > most.sum);
  });
  return end === -1 ? sizes.length : end;
}
