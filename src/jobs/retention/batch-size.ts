/**
 * Target duration of one write of a job, in milliseconds, which other writes wait for. It is a quarter of the promised
 * maximum, since durations vary: the next rows may have more to remove, and the engine or the machine may be busy.
 */
const WRITE_MS = 5;

/** Factor by which the next write grows after a short one. */
const GROWTH = 1.25;

/** Share of the maximum with which a job starts, before it knows how fast the database is. */
const FIRST_SHARE = 1 / 8;

/** The share of the maximum size that the next write of a job uses, based on the duration of the last one. */
export class BatchSize {
  #share = FIRST_SHARE;

  /** Returns the share of a number, at least 1. */
  of(most: number): number {
    return Math.max(1, Math.floor(most * this.#share));
  }

  /** Runs one write with the current size, and adapts the size to the time that it took. */
  async measure<T>(run: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await run();
    } finally {
      this.took(performance.now() - began);
    }
  }

  /** Adapts the size to the duration of a write: at most half if it took too long, a little more if it was short. */
  took(ms: number): void {
    if (ms > WRITE_MS) this.#share *= Math.min(1 / 2, WRITE_MS / ms);
    else if (ms < WRITE_MS / 2) this.#share = Math.min(1, this.#share * GROWTH);
    this.#share = Math.max(this.#share, 1e-3);
  }
}

/** A size for each kind of row, since some take much longer than others. */
export class BatchSizes {
  readonly #sizes = new Map<string, BatchSize>();

  of(kind: string): BatchSize {
    const size = this.#sizes.get(kind) ?? new BatchSize();
    this.#sizes.set(kind, size);
    return size;
  }
}

/** Returns how many of the next rows fit into a sum: at least one, since a row is never divided. */
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
