import { readDollar } from "./shell-dollar.ts";
import type { CommandFrame, ShellFrame } from "./shell-frame.ts";
import { announcedHereDocument, openHereDocument } from "./shell-here-document.ts";
import { type ShellReader, UnsupportedPosition } from "./shell-reader.ts";
import { endWord } from "./shell-word.ts";

/** Operators that end an unquoted word. */
const OPERATORS: Readonly<Record<string, (reader: ShellReader, frame: CommandFrame) => void>> = {
  " ": readBlank,
  "\t": readBlank,
  "\n": readNewline,
  ";": readSeparator,
  "&": readSeparator,
  "|": readSeparator,
  "(": readOpening,
  ")": readClosing,
  "<": readRedirection,
  ">": readRedirection,
};

/**
 * Reads one step of a program: an operator, a character of a word, or the opening of a quotation in
 * it.
 */
export function readCommand(reader: ShellReader, frame: CommandFrame): void {
  const operator = OPERATORS[reader.text.charAt(reader.at)];
  if (operator) {
    endWord(reader, frame);
    operator(reader, frame);
  } else if (reader.lookingAt("#") && frame.wordStart === undefined) {
    reader.open({ kind: "comment" }, 1);
  } else if (reader.lookingAt("\\\n")) {
    // Continued lines are joined before words are separated.
    reader.skip(2);
  } else readWord(reader, frame);
}

function readWord(reader: ShellReader, frame: CommandFrame): void {
  const character = reader.text.charAt(reader.at);
  frame.wordStart ??= reader.at;
  if ("\\'\"`$".includes(character)) frame.isLiteral = false;
  if (character === "\\") reader.escape();
  else if (character === "'") reader.open({ kind: "single" }, 1);
  else if (character === '"') reader.open({ kind: "double" }, 1);
  else if (character === "`") reader.open({ kind: "backquotes" }, 1);
  else if (character === "$") readDollar(reader);
  else reader.skip(1);
}

function readBlank(reader: ShellReader): void {
  reader.skip(1);
}

function readNewline(reader: ShellReader, frame: CommandFrame): void {
  frame.atCommand = true;
  reader.skip(1);
  const waits = (each: ShellFrame) =>
    each.kind === "command" && each !== frame && each.awaitedHereDocuments.length > 0;
  if (reader.stack.some(waits))
    reader.rejectFromHere("a newline in $( ) on the line that announces a here-document");
  openHereDocument(reader, frame);
}

function readSeparator(reader: ShellReader, frame: CommandFrame): void {
  const clause = frame.open.at(-1);
  const endsClause = reader.lookingAt(";;") || reader.lookingAt(";&");
  if (endsClause && clause?.kind === "case" && clause.awaits === "end") clause.awaits = "pattern";
  // Between the patterns of a case, | separates no commands.
  frame.atCommand = true;
  reader.skip(endsClause ? 2 : 1);
}

function readOpening(reader: ShellReader, frame: CommandFrame): void {
  if (reader.lookingAt("(", 1) || reader.lookingAt("\\\n", 1)) reader.rejectFromHere("((");
  const clause = frame.open.at(-1);
  if (clause?.kind === "case" && clause.awaits === "pattern") clause.awaits = "parenthesis";
  else frame.open.push({ kind: "subshell" });
  frame.atCommand = true;
  reader.skip(1);
}

function readClosing(reader: ShellReader, frame: CommandFrame): void {
  frame.atCommand = true;
  const closed = frame.open.at(-1);
  if (closed?.kind === "subshell") frame.open.pop();
  else if (closed?.kind === "case" && closed.awaits === "parenthesis") closed.awaits = "end";
  else if (closed || !frame.substituted) reader.rejectFromHere("a ) that closes nothing");
  else if (frame.awaitedHereDocuments.length > 0)
    reader.rejectFromHere("a $( ) that ends before its here-document begins");
  else reader.stack.pop();
  reader.skip(1);
}

function readRedirection(reader: ShellReader, frame: CommandFrame): void {
  frame.atCommand = false;
  if (reader.lookingAt("\\\n", 1)) reader.rejectFromHere("a line that ends with <\\ or >\\");
  if (reader.lookingAt("<<<")) reader.skip(3);
  else if (reader.lookingAt("<<")) announceHereDocument(reader, frame);
  else reader.skip(/[<>&|]/.test(reader.text.charAt(reader.at + 1)) ? 2 : 1);
}

function announceHereDocument(reader: ShellReader, frame: CommandFrame): void {
  const announced = announcedHereDocument(reader.text, reader.at);
  if (!announced) reader.rejectFromHere("a here-document with such a delimiter");
  if (reader.expression && reader.expression.start < announced.end) {
    throw new UnsupportedPosition("in the delimiter of a here-document");
  }
  frame.awaitedHereDocuments.push(announced.document);
  reader.at = announced.end;
}
