/**
 * Calls of one caller to one operation without side effects that may produce
 * their responses at the same time, each up to a full page; so many may exceed a
 * caller's limit for each operation.
 */
export const READS_PER_CALLER = 4;

/** What a full page is counted as, in bytes. Reads of short texts hold no more than one together. */
export const PAGE_BYTES = 4 * 2 ** 20;

/** Maximum number of reads of short texts at the same time: more would only wait for each other in the database. */
const MOST_SHORT = 32;

/**
 * The reads of one caller by one operation that produce their responses. Those that
 * hold only short texts share one of the places of full pages.
 */
export class CallerReads {
  #full = 0;
  #short = 0;
  #shortBytes = 0;

  /** Begins a read if there is room. @param shortBytes undefined for one that may become a full page */
  begin(shortBytes: number | undefined): boolean {
    if (shortBytes === undefined) return this.beginFull();
    if (this.#full >= READS_PER_CALLER || this.#short >= MOST_SHORT) return false;
    if (this.#short > 0 && this.#shortBytes + shortBytes > PAGE_BYTES) return false;
    this.#short += 1;
    this.#shortBytes += shortBytes;
    return true;
  }

  /** Begins a full page if there is room, which may be that of a read of short texts that has met long ones. */
  beginFull(): boolean {
    if (this.#full + Math.min(this.#short, 1) >= READS_PER_CALLER) return false;
    this.#full += 1;
    return true;
  }

  /** Ends a read. @param isFull whether it had begun a full page */
  end(shortBytes: number | undefined, isFull: boolean): void {
    if (isFull) this.#full -= 1;
    if (shortBytes === undefined) return;
    this.#short -= 1;
    this.#shortBytes -= shortBytes;
  }
}
