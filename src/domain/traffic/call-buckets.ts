/** A bucket that is not used for as long is full again, whatever other servers reported about it, and is forgotten. */
const FORGET_MS = 60_000;

/** Buckets of one generation at most: beyond it the generation ends early, so that memory is bounded. */
const MAX_BUCKETS = 100_000;

/** The share of a minute's calls that may come at once; the rest of the minute gives the others. */
const BURST = 0.05;
/** What a minute lets through at most, in limits: a little more, as several servers let a little less through. */
const MOST = 1.03;
/** The share of its limit that comes back to a bucket in a minute at least: where the burst is all of the limit. */
const LEAST_RATE = 0.1;
/** As many calls as come back in this time are shared with other servers; fewer wait until there are as many. */
const SHARED_MS = 100;
/** A bucket holds what comes back in this time at least: others report the calls of a second at once. */
const LEAST_BURST_MS = 1_000;
const MINUTE_MS = 60_000;

/** The calls that are left to a token, an account or an address. */
export interface CallBucket {
  /** Calls that may come at once; below 0 when other servers have let more through than there were. */
  level: number;
  /** When the level was that, in milliseconds. */
  at: number;
  /** Calls that were not yet shared with other servers. */
  unshared: number;
}

/**
 * Buckets of tokens, one for each key. A twentieth of the calls of a minute may come at once, and the rest comes back
 * evenly over a minute: so a server by itself lets no more than 103 % of the limit through in any minute, and no fewer than
 * 98 %. Several servers divide what may come at once, and each hears what the others let through.
 */
export class CallBuckets {
  readonly limit: number;
  #burst: number;
  readonly #whole: number;
  readonly #perMs: number;
  #young = new Map<string, CallBucket>();
  #old = new Map<string, CallBucket>();
  #turnedAt = Number.NEGATIVE_INFINITY;

  /** @param limit calls in a minute, at least 1 */
  constructor(limit: number) {
    this.limit = limit;
    this.#whole = Math.max(1, limit * BURST);
    this.#burst = this.#whole;
    this.#perMs = Math.max(limit * MOST - this.#whole, limit * LEAST_RATE) / MINUTE_MS;
  }

  /** Calls that may come at once, at this server. */
  get burst(): number {
    return this.#burst;
  }

  /** Divides what may come at once among servers. @param servers how many there are, this one included */
  divideAmong(servers: number): void {
    const least = Math.min(this.#whole, this.#perMs * LEAST_BURST_MS);
    this.#burst = Math.max(1, this.#whole / servers, least);
  }

  /**
   * Takes one call out of the bucket of a key.
   * @param now milliseconds, never going back
   * @returns milliseconds to wait; 0 when the call may go on
   */
  take(key: string, now: number): number {
    return this.takeFrom(this.bucketOf(key, now));
  }

  /** Does the same with a bucket that was just filled up. */
  takeFrom(bucket: CallBucket): number {
    if (bucket.level < 1) return (1 - bucket.level) / this.#perMs;
    bucket.level -= 1;
    bucket.unshared += 1;
    return 0;
  }

  /** Returns how long a call of a key has to wait, in milliseconds, without taking one out. */
  waitOf(key: string, now: number): number {
    if (!this.#young.has(key) && !this.#old.has(key)) return 0;
    const { level } = this.bucketOf(key, now);
    return level < 1 ? (1 - level) / this.#perMs : 0;
  }

  /** Returns how long it takes until a bucket of this level is full, in milliseconds. */
  msToFull(level: number): number {
    return Math.max(0, this.#burst - level) / this.#perMs;
  }

  /** Returns the calls to share with other servers, the most used first, and counts them as shared. */
  takeUnshared(most: number): [key: string, calls: number][] {
    const least = Math.max(1, this.#perMs * SHARED_MS);
    const used = [...this.#young].filter(([, { unshared }]) => unshared >= least);
    const first = used.toSorted(([, one], [, other]) => other.unshared - one.unshared).slice(0, most);
    return first.map(([key, bucket]) => {
      const { unshared } = bucket;
      bucket.unshared = 0;
      return [key, unshared];
    });
  }

  /** Takes out what another server has let through. */
  hear(key: string, calls: number, now: number): void {
    this.bucketOf(key, now).level -= calls;
  }

  /** The number of buckets in memory. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Returns the bucket of a key, filled up to now. */
  bucketOf(key: string, now: number): CallBucket {
    if (now - this.#turnedAt >= FORGET_MS || this.#young.size >= MAX_BUCKETS) this.#turn(now);
    let bucket = this.#young.get(key);
    if (!bucket) {
      bucket = this.#old.get(key) ?? { level: this.#burst, at: now, unshared: 0 };
      this.#old.delete(key);
      this.#young.set(key, bucket);
    }
    const level = bucket.level + (now - bucket.at) * this.#perMs;
    bucket.at = now;
    bucket.level = Math.min(level, this.#burst);
    return bucket;
  }

  #turn(now: number): void {
    this.#old = now - this.#turnedAt >= 2 * FORGET_MS ? new Map() : this.#young;
    this.#young = new Map();
    this.#turnedAt = now;
  }
}
