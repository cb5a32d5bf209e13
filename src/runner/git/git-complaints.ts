/** Minimum number of bytes to keep of the newest lines: git states at the end why it failed. */
const MAX_BYTES = 64 * 1_024;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Collects git's standard error without its progress lines, which end with a lone carriage return and overwrite each
 * other on a terminal. Keeps whole lines only: masking would miss half a secret.
 */
export class GitComplaints {
  readonly #onProgress: ((line: string) => void) | undefined;
  #lines: Buffer[] = [];
  #bytes = 0;
  /** The current incomplete line; undefined when it is too long to keep. */
  #open: Buffer | undefined = Buffer.alloc(0);
  #endsWithReturn = false;

  /** @param onProgress receives each line of progress */
  constructor(onProgress: ((line: string) => void) | undefined) {
    this.#onProgress = onProgress;
  }

  add(bytes: Buffer): void {
    let start = 0;
    for (const [at, byte] of bytes.entries()) {
      if (byte === LINE_FEED) {
        this.#keep(this.#endLine(bytes.subarray(start, at + 1)));
        start = at + 1;
      } else if (this.#endsWithReturn) {
        const line = this.#endLine(bytes.subarray(start, at));
        if (line) this.#onProgress?.(line.toString().trim());
        start = at;
      }
      this.#endsWithReturn = byte === CARRIAGE_RETURN;
    }
    this.#extend(bytes.subarray(start));
  }

  get text(): string {
    return Buffer.concat([...this.#lines, this.#open ?? Buffer.alloc(0)]).toString();
  }

  /** Completes the current line with these bytes and returns it; undefined when it is too long. */
  #endLine(bytes: Buffer): Buffer | undefined {
    this.#extend(bytes);
    const line = this.#open;
    this.#open = Buffer.alloc(0);
    return line;
  }

  #extend(bytes: Buffer): void {
    if (this.#open) this.#open = Buffer.concat([this.#open, bytes]);
    if (this.#open && this.#open.length > MAX_BYTES) this.#open = undefined;
  }

  #keep(line: Buffer | undefined): void {
    if (!line) return;
    this.#lines.push(line);
    this.#bytes += line.length;
    const [oldest] = this.#lines;
    if (oldest && this.#bytes - oldest.length >= MAX_BYTES) {
      this.#lines.shift();
      this.#bytes -= oldest.length;
    }
  }
}
