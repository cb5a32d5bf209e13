/** A line of a program's output, or the length of a line that was too long to be stored. */
export type OutputLine =
  | { readonly kind: "line"; readonly bytes: Buffer }
  | { readonly kind: "too-long"; readonly lengthBytes: number };

const LINE_FEED = 10;

/** Joins chunks of output into lines. Drops the content of lines that are too long. */
export class LineReader {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  /** The length of the current line, including bytes that were dropped. */
  #lengthBytes = 0;

  /** @param maxBytes maximum length of a stored line, without its line feed */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the lines that end in these bytes. */
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

  /** Returns the text after the last line feed, or undefined when there is none. */
  end(): OutputLine | undefined {
    return this.#lengthBytes > 0 ? this.#whole() : undefined;
  }

  #add(piece: Buffer): void {
    this.#lengthBytes += piece.length;
    if (this.#lengthBytes > this.#maxBytes) this.#pieces = [];
    else this.#pieces.push(piece);
  }

  #whole(): OutputLine {
    const lengthBytes = this.#lengthBytes;
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#lengthBytes = 0;
    return lengthBytes > this.#maxBytes ? { kind: "too-long", lengthBytes } : { kind: "line", bytes };
  }
}
