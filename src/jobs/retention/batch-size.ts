/** Time that one write of a job may take, in milliseconds: others wait for it. A half of what is promised, for what varies. */
const WRITE_MS = 10;

/** The share of the most with which a job begins, before it knows how fast the database is. */
const FIRST_SHARE = 1 / 4;

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

  /** Learns from a write of the present size: less at once where it took too long, twice as much where it was short. */
  took(ms: number): void {
    if (ms > WRITE_MS) this.#share *= WRITE_MS / ms;
    else if (ms < WRITE_MS / 2) this.#share = Math.min(1, this.#share * 2);
    this.#share = Math.max(this.#share, 1e-3);
  }
}
