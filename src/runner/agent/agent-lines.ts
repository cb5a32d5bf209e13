/** A line of a program's output, or the length of one that was too long to be kept. */
export type OutputLine =
  | { readonly kind: "line"; readonly bytes: Buffer }
  | { readonly kind: "too-long"; readonly lengthBytes: number };

const LINE_FEED = 10;

/** Puts lines together from pieces; what is kept of one is bounded. */
export class LineReader {
  readonly #mostBytes: number;
  #pieces: Buffer[] = [];
  /** Of the line that has begun, with what was not kept. */
  #lengthBytes = 0;

  /** @param mostBytes longest line that is kept, without its end */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** The lines that end in these bytes. */
  write(bytes: Buffer): OutputLine[] {
    const lines: OutputLine[] = [];
    let from = 0;
    for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, from)) {
      this.#add(bytes.subarray(from, at));
      lines.push(this.#whole());
      from = at + 1;
    }
    this.#add(bytes.subarray(from));
    return lines;
  }

  /** What stands behind the last end of a line; undefined when nothing does. */
  end(): OutputLine | undefined {
    return this.#lengthBytes > 0 ? this.#whole() : undefined;
  }

  #add(piece: Buffer): void {
    this.#lengthBytes += piece.length;
    if (this.#lengthBytes > this.#mostBytes) this.#pieces = [];
    else this.#pieces.push(piece);
  }

  #whole(): OutputLine {
    const lengthBytes = this.#lengthBytes;
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#lengthBytes = 0;
    return lengthBytes > this.#mostBytes ? { kind: "too-long", lengthBytes } : { kind: "line", bytes };
  }
}
