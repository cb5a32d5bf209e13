import type { CaseClause, CommandFrame } from "./shell-frame.ts";
import type { ShellReader } from "./shell-reader.ts";

/** Reserved words after which another one may follow. */
const BEFORE_RESERVED = new Set([
  "!",
  "{",
  "}",
  "do",
  "done",
  "elif",
  "else",
  "fi",
  "if",
  "then",
  "until",
  "while",
]);

/** Reserved words of some shells, which start a grammar of their own. */
const NOT_OF_POSIX = new Set(["[[", "coproc", "function", "select"]);

/**
 * Ends the current word, if any, and handles it where it is a reserved word. Only `case` matters,
 * because the `)` after its patterns closes nothing; the others show where the next command begins.
 */
export function endWord(reader: ShellReader, frame: CommandFrame): void {
  if (frame.wordStart === undefined) return;
  const word = frame.isLiteral ? reader.text.slice(frame.wordStart, reader.at).replaceAll("\\\n", "") : "";
  frame.wordStart = undefined;
  frame.isLiteral = true;
  const innermost = frame.open.at(-1);
  if (innermost?.kind === "case" && innermost.awaits !== "end") endCaseWord(reader, frame, innermost, word);
  else if (frame.atName) {
    frame.atName = false;
    frame.atCommand = true;
  } else if (frame.atCommand) endCommandWord(reader, frame, innermost, word);
}

function endCommandWord(
  reader: ShellReader,
  frame: CommandFrame,
  innermost: CommandFrame["open"][number] | undefined,
  word: string,
): void {
  if (NOT_OF_POSIX.has(word)) reader.rejectFromHere(`${word}, which is not of POSIX sh`);
  frame.atCommand = BEFORE_RESERVED.has(word);
  frame.atName = word === "for";
  if (word === "case") frame.open.push({ kind: "case", awaits: "subject" });
  if (word === "esac" && innermost?.kind === "case") endCase(frame);
}

function endCaseWord(reader: ShellReader, frame: CommandFrame, clause: CaseClause, word: string): void {
  if (clause.awaits === "subject") clause.awaits = "in";
  else if (clause.awaits === "in") {
    if (word !== "in") reader.rejectFromHere("a case without in");
    clause.awaits = "pattern";
  } else if (clause.awaits === "pattern" && word === "esac") endCase(frame);
  else clause.awaits = "parenthesis";
}

function endCase(frame: CommandFrame): void {
  frame.open.pop();
  frame.atCommand = true;
}
