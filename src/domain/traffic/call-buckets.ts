/** Time after which an unused bucket is full again, whatever other servers reported about it, and is removed. */
const FORGET_MS = 60_000;

/** Maximum number of buckets in a generation. A full generation ends early, which bounds the memory. */
const MAX_BUCKETS = 100_000;

/** The share of a minute's calls that may come at once; the others become available over the minute. */
const BURST = 0.05;
/** Maximum calls per minute, as a multiple of the limit. It is above 1, since several servers allow a little less. */
const MAX_RATE = 1.03;
/** Minimum share of its limit that a bucket regains per minute, which applies if the burst is the whole limit. */
const MIN_RATE = 0.1;
/** Calls are reported to other servers once there are as many as a bucket regains in this time. */
const SHARED_MS = 100;
/** A bucket holds at least what it regains in this time, since other servers report the calls of a second at once. */
const MIN_BURST_MS = 1_000;
const MINUTE_MS = 60_000;

/** The calls that are left to a token, an account or an address. */
export interface CallBucket {
  /** Calls that may come at once; below 0 when other servers have accepted more calls than were left. */
  level: number;
  /** When the level was that, in milliseconds. */
  at: number;
  /** Calls that were not yet shared with other servers. */
  unshared: number;
}

/**
 * Token buckets, one for each key. A twentieth of a minute's calls may come at once, and the rest becomes available
 * evenly over the minute. A single server therefore accepts between 98 % and 103 % of the limit in any minute. Several
 * servers divide the burst, and each is informed of the calls that the others have accepted.
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
    this.#perMs = Math.max(limit * MAX_RATE - this.#whole, limit * MIN_RATE) / MINUTE_MS;
  }

  /** Calls that may come at once, at this server. */
  get burst(): number {
    return this.#burst;
  }

  /** Divides the burst among servers. @param servers number of servers, including this one */
  divideAmong(servers: number): void {
    const least = Math.min(this.#whole, this.#perMs * MIN_BURST_MS);
    this.#burst = Math.max(1, this.#whole / servers, least);
  }

  /**
   * Takes one call out of the bucket of a key.
   * @param now milliseconds, never decreasing
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
  takeUnsharedCalls(max: number): [key: string, calls: number][] {
    const least = Math.max(1, this.#perMs * SHARED_MS);
    const used = [...this.#young].filter(([, { unshared }]) => unshared >= least);
    const first = used.toSorted(([, one], [, other]) => other.unshared - one.unshared).slice(0, max);
    return first.map(([key, bucket]) => {
      const { unshared } = bucket;
      bucket.unshared = 0;
      return [key, unshared];
    });
  }

  /** Subtracts the calls that another server has accepted. */
  subtractRemote(key: string, calls: number, now: number): void {
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
