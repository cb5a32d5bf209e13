import { readDollar } from "./shell-dollar.ts";
import type { CommandFrame, ShellFrame } from "./shell-frame.ts";
import { announcedHereDocument, openHereDocument } from "./shell-here-document.ts";
import { PlaceRefused, type ShellReader } from "./shell-reader.ts";
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
  } else if (reader.sees("#") && frame.wordStart === undefined) {
    reader.open({ kind: "comment" }, 1);
  } else if (reader.sees("\\\n")) {
    // Continued lines are joined before words are separated.
    reader.skip(2);
  } else readWord(reader, frame);
}

function readWord(reader: ShellReader, frame: CommandFrame): void {
  const character = reader.text.charAt(reader.at);
  frame.wordStart ??= reader.at;
  if ("\\'\"`$".includes(character)) frame.plain = false;
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
  const waits = (each: ShellFrame) => each.kind === "command" && each !== frame && each.awaited.length > 0;
  if (reader.stack.some(waits))
    reader.unclear("a newline in $( ) on the line that announces a here-document");
  openHereDocument(reader, frame);
}

function readSeparator(reader: ShellReader, frame: CommandFrame): void {
  const clause = frame.open.at(-1);
  const endsClause = reader.sees(";;") || reader.sees(";&");
  if (endsClause && clause?.kind === "case" && clause.awaits === "end") clause.awaits = "pattern";
  // Between the patterns of a case, | separates no commands.
  frame.atCommand = true;
  reader.skip(endsClause ? 2 : 1);
}

function readOpening(reader: ShellReader, frame: CommandFrame): void {
  if (reader.sees("(", 1) || reader.sees("\\\n", 1)) reader.unclear("((");
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
  else if (closed || !frame.substituted) reader.unclear("a ) that closes nothing");
  else if (frame.awaited.length > 0) reader.unclear("a $( ) that ends before its here-document begins");
  else reader.stack.pop();
  reader.skip(1);
}

function readRedirection(reader: ShellReader, frame: CommandFrame): void {
  frame.atCommand = false;
  if (reader.sees("\\\n", 1)) reader.unclear("a line that ends with <\\ or >\\");
  if (reader.sees("<<<")) reader.skip(3);
  else if (reader.sees("<<")) announceHereDocument(reader, frame);
  else reader.skip(/[<>&|]/.test(reader.text.charAt(reader.at + 1)) ? 2 : 1);
}

function announceHereDocument(reader: ShellReader, frame: CommandFrame): void {
  const announced = announcedHereDocument(reader.text, reader.at);
  if (!announced) reader.unclear("a here-document with such a delimiter");
  if (reader.expression && reader.expression.start < announced.end) {
    throw new PlaceRefused("in the delimiter of a here-document");
  }
  frame.awaited.push(announced.document);
  reader.at = announced.end;
}
