/** The newest lines are kept, at least these bytes of them: git states at the end why it failed. */
const MAX_BYTES = 64 * 1_024;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Collects the standard error of git without its progress: lines that the next one
 * overwrites on a terminal, since they end with a carriage return alone. Lines are
 * kept whole or not at all: half a secret in one would not be recognised.
 */
export class GitComplaints {
  readonly #onProgress: ((line: string) => void) | undefined;
  #lines: Buffer[] = [];
  #bytes = 0;
  /** The line that has not ended yet; undefined for one that is too long to be kept. */
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

  /** Returns the line that ends with these bytes; undefined when it is too long. */
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
