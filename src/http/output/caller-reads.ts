/**
 * Maximum number of calls of one caller to one read operation that may produce
 * their responses at the same time, each up to a full page. Together they may
 * exceed the caller's limit of bytes, for each operation.
 */
export const READS_PER_CALLER = 4;

/** Bytes that a full page counts as. All reads of short texts together hold no more than one full page. */
export const PAGE_BYTES = 4 * 2 ** 20;

/** Maximum number of concurrent reads of short texts: more would only wait for each other in the database. */
const MAX_SHORT = 32;

/**
 * The reads of one caller by one operation that are producing their responses.
 * Reads that hold only short texts share one slot of a full page.
 */
export class CallerReads {
  #full = 0;
  #short = 0;
  #shortBytes = 0;

  /** Begins a read if there is room. @param shortBytes undefined for one that may become a full page */
  begin(shortBytes: number | undefined): boolean {
    if (shortBytes === undefined) return this.beginFull();
    if (this.#full >= READS_PER_CALLER || this.#short >= MAX_SHORT) return false;
    if (this.#short > 0 && this.#shortBytes + shortBytes > PAGE_BYTES) return false;
    this.#short += 1;
    this.#shortBytes += shortBytes;
    return true;
  }

  /** Begins a full page if there is room, also for a read of short texts that has met long ones. */
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
