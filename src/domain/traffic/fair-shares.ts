const SECOND_MS = 1000;

/**
 * Shares the calls of a server among organizations: while they want more than it is to answer, each gets as much as it
 * wants up to a share that is the same for all, and nobody's calls are refused before that. The share of a second
 * comes from what was wanted in the second before.
 */
export class FairShares {
  readonly #perSecond: number;
  #wanted = new Map<string, { calls: number }>();
  #beganAt = Number.NEGATIVE_INFINITY;
  #share = Number.POSITIVE_INFINITY;

  /** @param perSecond calls that the server is to answer in a second; 0 for as many as come */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /**
   * Counts a call of an organization and returns whether it may go on.
   * @param now milliseconds, never going back
   */
  admits(organizationId: string, now: number): boolean {
    if (this.#perSecond === 0) return true;
    if (now - this.#beganAt >= SECOND_MS) this.#turn(now);
    let wanted = this.#wanted.get(organizationId);
    if (!wanted) {
      wanted = { calls: 0 };
      this.#wanted.set(organizationId, wanted);
    }
    wanted.calls += 1;
    return wanted.calls <= this.#share;
  }

  #turn(now: number): void {
    const isNext = now - this.#beganAt < 2 * SECOND_MS;
    this.#share = isNext
      ? fairShare(
          [...this.#wanted.values()].map(({ calls }) => calls),
          this.#perSecond,
        )
      : Number.POSITIVE_INFINITY;
    this.#wanted = new Map();
    this.#beganAt = now;
  }
}

/**
 * Returns the largest share that all may have so that their sum is at most the whole, where each takes no more than it
 * wants (max-min fairness); infinite when all get what they want.
 */
export function fairShare(wanted: readonly number[], whole: number): number {
  let left = whole;
  const ascending = wanted.toSorted((one, other) => one - other);
  for (const [index, want] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (want > share) return Math.max(1, share);
    left -= want;
  }
  return Number.POSITIVE_INFINITY;
}
