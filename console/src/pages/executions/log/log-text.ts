/** A line of a log as it is shown. */
export interface LogLine {
  readonly text: string;
  /** True for a note of the page itself, such as that a part is missing. */
  readonly isNote: boolean;
}

/** Maximum characters of a line that are shown; the downloaded file has all of them. */
const MAX_LINE_LENGTH = 2_000;

/** Characters after which an unterminated line counts as ended, so that it is not processed again with each piece. */
const MAX_OPEN_LENGTH = 16_384;

/** Terminal escape sequences: colours, cursors, window titles, and unterminated ones. */
const SEQUENCES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are what it is about
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]/g;

/** Characters that are invisible, or that hide or reorder text. */
const HIDDEN = /[\p{Cc}\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;

/** Returns a line that is safe to read: without terminal sequences, and with hidden characters made visible. */
export function readableLine(line: string): string {
  const plain = line.replace(SEQUENCES, "");
  // Like a terminal, omits what the program overwrote, such as a progress bar.
  const last = plain.replace(/\r+$/, "");
  const shown = last.slice(last.lastIndexOf("\r") + 1);
  const readable = shown.replace(HIDDEN, (character) => (character === "\t" ? "    " : pictureOf(character)));
  return readable.length > MAX_LINE_LENGTH ? `${readable.slice(0, MAX_LINE_LENGTH)} …` : readable;
}

const pictureOf = (character: string): string => {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `‹${code.toString(16).padStart(4, "0")}›`;
};

/** The log of one step, as far as the page has read it. */
export interface LogText {
  /** Adds a piece of the step's output, which may end within a line or a character. */
  add(piece: { readonly offset: number; readonly data: Uint8Array; readonly attempt: number }): void;
  readonly lines: readonly LogLine[];
  /** Bytes of the step's output that were read or skipped: the offset for the next request. */
  readonly offset: number;
  /** Changes with each piece. */
  readonly version: number;
  /** Returns the output unchanged. */
  bytes(): Blob;
}

/** Creates an empty log. */
export function createLogText(): LogText {
  let decoder = new TextDecoder();
  let pieces: Uint8Array<ArrayBuffer>[] = [];
  let lines: LogLine[] = [];
  let rest = "";
  let offset = 0;
  let version = 0;
  let attempt = 0;
  const restart = () => {
    decoder = new TextDecoder();
    pieces = [];
    lines = [];
    rest = "";
    offset = 0;
  };
  const addText = (text: string) => {
    const [first = "", ...more] = (rest + text).split("\n");
    // Replaces the unterminated line by its continuation.
    if (rest !== "" && lines.length > 0) lines.pop();
    const all = [first, ...more];
    rest = all.pop() ?? "";
    for (const line of all) lines.push({ text: readableLine(line), isNote: false });
    if (rest === "") return;
    lines.push({ text: readableLine(rest), isNote: false });
    if (rest.length > MAX_OPEN_LENGTH) rest = "";
  };
  return {
    add(piece) {
      if (piece.attempt > attempt && offset > 0) restart();
      attempt = Math.max(attempt, piece.attempt);
      const read = offset - piece.offset;
      // Two overlapping readers may deliver the same bytes.
      if (piece.attempt < attempt || piece.data.length <= read) return;
      if (read < 0) {
        rest = "";
        decoder = new TextDecoder();
        lines.push({ text: `${(-read).toLocaleString()} bytes were not kept`, isNote: true });
      }
      const data = new Uint8Array(piece.data.subarray(Math.max(0, read)));
      pieces.push(data);
      offset = piece.offset + piece.data.length;
      addText(decoder.decode(data, { stream: true }));
      version++;
    },
    get lines() {
      return lines;
    },
    get offset() {
      return offset;
    },
    get version() {
      return version;
    },
    bytes: () => new Blob(pieces, { type: "text/plain" }),
  };
}
