import { type BracesFrame, newCommandFrame, type ShellFrame } from "./shell-frame.ts";
import { type ShellReader, UnsupportedPosition } from "./shell-reader.ts";

/** `${name:-`, `${name#` and similar forms, up to the word; or `${name}` whole. */
const BRACES = /\$\{(?:[a-zA-Z_][a-zA-Z0-9_]*|[0-9]+|[@*#?$!-])(:?[-=?+]|%%?|##?|\})/y;

/** `${#name}`, and forms that only some shells have but all shells end alike. */
const SIMPLE_BRACES = /\$\{[^'"\\$`{}\n]*\}/y;

/** Reads the construct that a dollar sign begins, outside of single quotes. */
export function readDollar(reader: ShellReader): void {
  if (reader.expression?.start === reader.at + 1) {
    throw new UnsupportedPosition("right after a $: write \\$ for a dollar sign before it");
  }
  if (reader.lookingAt("\\\n", 1)) reader.rejectFromHere("a line that ends with $\\");
  if (reader.lookingAt("[", 1)) reader.rejectFromHere("$[");
  if (reader.lookingAt("((", 1)) reader.open({ kind: "arithmetic", depth: 0 }, 3);
  else if (reader.lookingAt("(", 1)) reader.open(newCommandFrame(true), 2);
  else if (reader.lookingAt("{", 1)) openBraces(reader);
  else if (reader.lookingAt("'", 1) || reader.lookingAt('"', 1)) readDollarQuote(reader);
  else reader.skip(/[@*#?$!0-9-]/.test(reader.text.charAt(reader.at + 1)) ? 2 : 1);
}

function readDollarQuote(reader: ShellReader): void {
  const { top } = reader;
  if (top.kind === "quotesInBraces" || (top.kind === "braces" && top.word !== "unquoted")) {
    reader.rejectFromHere("$ and a quote inside a quoted ${");
  }
  if (reader.lookingAt("'", 1) && quoting(top) === "unquoted") reader.open({ kind: "ansi" }, 2);
  else reader.skip(1);
}

function openBraces(reader: ShellReader): void {
  BRACES.lastIndex = reader.at;
  const [opening, operator = ""] = BRACES.exec(reader.text) ?? [];
  if (opening === undefined) {
    readSimpleBraces(reader);
  } else if (operator === "}") {
    reader.skip(opening.length);
  } else {
    const isPattern = operator.startsWith("%") || operator.startsWith("#");
    const word = isPattern ? patternQuoting(reader) : quoting(reader.top);
    reader.open({ kind: "braces", word }, opening.length);
  }
}

/** Returns the quoting of the text in a frame. */
function quoting(frame: ShellFrame): BracesFrame["word"] {
  if (frame.kind === "braces") return frame.word;
  return frame.kind === "command" ? "unquoted" : "doubleQuoted";
}

/**
 * Returns the quoting of a pattern. Quotes around ${name#pattern} do not extend into the pattern;
 * in here-documents shells differ.
 */
function patternQuoting(reader: ShellReader): BracesFrame["word"] {
  const around = reader.stack.findLast((frame) => frame.kind !== "braces");
  return around?.kind === "hereDocument" ? "unknown" : "unquoted";
}

function readSimpleBraces(reader: ShellReader): void {
  SIMPLE_BRACES.lastIndex = reader.at;
  const [whole] = SIMPLE_BRACES.exec(reader.text) ?? [];
  if (whole === undefined) reader.rejectFromHere("a ${ that is not of POSIX sh");
  reader.skip(whole.length);
}
