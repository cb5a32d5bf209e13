import type { CommandFrame, HereDocument } from "./shell-frame.ts";
import type { ShellReader } from "./shell-reader.ts";

/** The offset of a here-document's delimiter line, and of the text after it. */
export interface BodyEnd {
  readonly end: number;
  readonly resume: number;
}

const OPERATOR = /<<(-?)[ \t]*/y;

/**
 * Delimiters that every sh reads alike: without expansions, newlines, and escapes between double
 * quotes.
 */
const DELIMITER = /(?:[^ \t\n'"\\$`;&|<>()]|\\[^\n]|'[^'\n]*'|"[^"\\$`\n]*")+(?=[ \t\n;&|<>()]|$)/y;

/**
 * Returns the here-document that `<<` at an offset announces, and the offset after its delimiter;
 * undefined when shells may differ over it.
 */
export function announcedHereDocument(
  text: string,
  at: number,
): { document: HereDocument; end: number } | undefined {
  OPERATOR.lastIndex = at;
  const operator = OPERATOR.exec(text);
  if (!operator) return undefined;
  DELIMITER.lastIndex = OPERATOR.lastIndex;
  const [written] = DELIMITER.exec(text) ?? [];
  if (written === undefined) return undefined;
  const document = {
    delimiter: written.replace(/\\(.)|'([^']*)'|"([^"]*)"/gsu, "$1$2$3"),
    quoted: /[\\'"]/.test(written),
    stripsTabs: operator[1] === "-",
  };
  return { document, end: operator.index + operator[0].length + written.length };
}

/**
 * Finds the body that begins at an offset.
 * @param limit end of the search: the end of the program, or of the here-document around this one
 * @returns undefined when the delimiter never comes, or only where shells may differ over it
 */
function hereDocumentBody(
  text: string,
  { delimiter, quoted, stripsTabs }: HereDocument,
  start: number,
  limit: number,
): BodyEnd | undefined {
  // Outside of quotes a backslash joins a line with the next one. Some shells look for the
  // delimiter before they join lines and some after.
  let joined = "";
  let continued = false;
  for (let at = start; at < limit; ) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 || newline > limit ? limit : newline;
    const line = stripsTabs ? text.slice(at, end).replace(/^\t+/, "") : text.slice(at, end);
    if (line === delimiter) return continued ? undefined : { end: at, resume: Math.min(end + 1, limit) };
    joined = continued ? joined + line : line;
    if (joined === delimiter) return undefined;
    continued = !quoted && /(?<!\\)(?:\\\\)*\\$/.test(line);
    if (continued) joined = joined.slice(0, -1);
    at = end + 1;
  }
  return undefined;
}

/** Opens the body of the next here-document that the frame awaits, if any. */
export function openHereDocument(reader: ShellReader, frame: CommandFrame): void {
  const document = frame.awaitedHereDocuments.shift();
  if (!document) return;
  const body = hereDocumentBody(reader.text, document, reader.at, reader.limit);
  if (!body) reader.rejectFromHere("a here-document whose end is unknown");
  reader.open({ kind: "hereDocument", quoted: document.quoted, ...body }, 0);
}
