import { readDollar } from "./shell-dollar.ts";
import type { ArithmeticFrame, BracesFrame, HereDocumentFrame } from "./shell-frame.ts";
import type { ShellReader } from "./shell-reader.ts";

/** Reads one character of a comment, which ends before its newline. */
export function readComment(reader: ShellReader): void {
  if (reader.lookingAt("\n")) reader.close(0);
  else reader.skip(1);
}

/** Reads one character of '...', where nothing is special. */
export function readSingle(reader: ShellReader): void {
  if (reader.lookingAt("'")) reader.close(1);
  else reader.skip(1);
}

/** Reads one character of $'...': some shells support escapes there, others read $ before '...'. */
export function readAnsi(reader: ShellReader): void {
  if (reader.lookingAt("\\'")) reader.rejectFromHere("$'...' with a quote in it");
  if (reader.lookingAt("\\")) reader.escape();
  else readSingle(reader);
}

/** Reads one character of "...". */
export function readDouble(reader: ShellReader): void {
  if (reader.lookingAt('"')) reader.close(1);
  else readSubstituted(reader);
}

/** Reads one character of `...`, of which only the end is needed. */
export function readBackquotes(reader: ShellReader): void {
  if (reader.lookingAt("`")) reader.close(1);
  else if (reader.lookingAt("\\")) reader.escape();
  else reader.skip(1);
}

/** Reads one step of the word in ${name:-word}. */
export function readBraces(reader: ShellReader, { word }: BracesFrame): void {
  const quote = reader.lookingAt('"') || (reader.lookingAt("'") && word !== "doubleQuoted");
  if (quote && word === "unknown") reader.rejectFromHere("a quoted pattern in a here-document");
  if (reader.lookingAt("}")) reader.close(1);
  else if (!quote) readSubstituted(reader);
  else if (reader.lookingAt("'")) reader.open({ kind: "single" }, 1);
  else reader.open({ kind: word === "unquoted" ? "double" : "quotesInBraces" }, 1);
}

/** Reads one character of the inner quotes in "${name:-"..."}", on which shells hardly agree. */
export function readQuotesInBraces(reader: ShellReader): void {
  if (reader.lookingAt("}") || reader.lookingAt("'"))
    reader.rejectFromHere("double quotes inside a quoted ${");
  if (reader.lookingAt('"')) reader.close(1);
  else readSubstituted(reader);
}

/** Reads one character of $(( )), up to the parentheses that end it. */
export function readArithmetic(reader: ShellReader, frame: ArithmeticFrame): void {
  if (reader.lookingAt("'")) reader.rejectFromHere("a single quote inside $(( ))");
  if (reader.lookingAt("(")) frame.depth += 1;
  if (!reader.lookingAt(")")) readSubstituted(reader);
  else if (frame.depth > 0) {
    frame.depth -= 1;
    reader.skip(1);
  } else if (reader.lookingAt("))")) reader.close(2);
  else reader.rejectFromHere("$(( that may begin a subshell");
}

/** Reads one step of a here-document's body. */
export function readHereDocument(reader: ShellReader, { quoted }: HereDocumentFrame): void {
  if (quoted) reader.skip(1);
  else readSubstituted(reader);
}

/** Reads a special character of a text that sh substitutes. */
function readSubstituted(reader: ShellReader): void {
  if (reader.lookingAt("\\")) reader.escape();
  else if (reader.lookingAt("$")) readDollar(reader);
  else if (reader.lookingAt("`")) reader.open({ kind: "backquotes" }, 1);
  else reader.skip(1);
}
