import type { ParameterExpression } from "../parameter/parameter-expression.ts";
import { readCommand } from "./shell-command.ts";
import type { ShellFrame } from "./shell-frame.ts";
import { openHereDocument } from "./shell-here-document.ts";
import {
  readAnsi,
  readArithmetic,
  readBackquotes,
  readBraces,
  readComment,
  readDouble,
  readHereDocument,
  readQuotesInBraces,
  readSingle,
} from "./shell-quotation.ts";
import { ShellReader, UnsupportedPosition } from "./shell-reader.ts";

/**
 * The quoting of the text around an expression; a here-document and a comment count as double
 * quoted.
 */
export type ShellQuoting = "unquoted" | "doubleQuoted" | "singleQuoted";

/** The problem of a command that contains an expression. */
export interface ShellProblem {
  /** Expression in an unsupported position; undefined when the command has no end. */
  readonly expression: ParameterExpression | undefined;
  /** Completes "the expression is ..." or "the command ends ...". */
  readonly problem: string;
}

/**
 * Returns the quoting at each expression of a shell program.
 *
 * The program is parsed as POSIX sh parses it, as far as quoting goes. Where the quoting is
 * unclear, or shells differ, the result is a problem rather than a guess.
 */
export function shellQuotings(
  program: string,
  expressions: readonly ParameterExpression[],
): ReadonlyMap<ParameterExpression, ShellQuoting> | ShellProblem {
  const reader = new ShellReader(program, expressions);
  const quotings = new Map<ParameterExpression, ShellQuoting>();
  try {
    while (hasMore(reader)) {
      const { expression } = reader;
      if (expression?.start === reader.at) {
        quotings.set(expression, quotingIn(reader));
        reader.skipExpression();
      } else step(reader, reader.top);
    }
  } catch (thrown) {
    if (!(thrown instanceof UnsupportedPosition)) throw thrown;
    // The rest of a program after its last expression does not matter.
    return reader.expression ? { expression: reader.expression, problem: thrown.message } : quotings;
  }
  const problem = missingEnd(reader.top);
  return problem === undefined ? quotings : { expression: undefined, problem };
}

/** Returns whether there is more to read; leaves here-documents and comments that end here. */
function hasMore(reader: ShellReader): boolean {
  while (reader.at >= reader.limit) {
    const { top } = reader;
    if (top.kind === "comment") reader.close(0);
    else if (top.kind === "hereDocument") {
      reader.close(top.resume - reader.at);
      if (reader.top.kind === "command") openHereDocument(reader, reader.top);
    } else return false;
  }
  return true;
}

function step(reader: ShellReader, top: ShellFrame): void {
  switch (top.kind) {
    case "command":
      readCommand(reader, top);
      break;
    case "comment":
      readComment(reader);
      break;
    case "single":
      readSingle(reader);
      break;
    case "ansi":
      readAnsi(reader);
      break;
    case "double":
      readDouble(reader);
      break;
    case "backquotes":
      readBackquotes(reader);
      break;
    case "braces":
      readBraces(reader, top);
      break;
    case "quotesInBraces":
      readQuotesInBraces(reader);
      break;
    case "arithmetic":
      readArithmetic(reader, top);
      break;
    case "hereDocument":
      readHereDocument(reader, top);
      break;
  }
}

/**
 * A word that begins like an element of an array, `name[` or in a list `[`. Some shells evaluate
 * the index, and run commands that they find in it.
 */
const INDEX = /^(?:[a-zA-Z_][a-zA-Z0-9_]*)?\[[^\]]*$/;

/**
 * Returns why a frame can contain no expression at this offset, at any depth; undefined where it
 * can.
 */
function unsupportedReason(frame: ShellFrame, text: string, at: number): string | undefined {
  switch (frame.kind) {
    case "command":
      if (!INDEX.test(text.slice(frame.wordStart ?? at, at))) return undefined;
      return "inside a [ that may begin an array's index, which is program text: quote the [";
    case "arithmetic":
      return "inside $(( )), where its value would be program text: assign it to a variable and check that first";
    case "quotesInBraces":
      return "between double quotes inside a quoted ${: take the inner quotes off";
    case "ansi":
      return "inside $'...', which shells read in different ways: use '...' or \"...\"";
    case "backquotes":
      return "inside backquotes: write $( ) in their place";
    case "braces":
      if (frame.word !== "unknown") return undefined;
      return "in a pattern in a here-document, which shells read in different ways: use a variable of your own";
    case "hereDocument":
      if (!frame.quoted) return undefined;
      return "in a here-document with a quoted delimiter, where sh substitutes nothing: take the quotes off";
    default:
      return undefined;
  }
}

function quotingIn({ top, stack, text, at }: ShellReader): ShellQuoting {
  for (const frame of stack) {
    const reason = unsupportedReason(frame, text, at);
    if (reason !== undefined) throw new UnsupportedPosition(reason);
  }
  if (top.kind === "command") {
    top.wordStart ??= at;
    top.isLiteral = false;
    return "unquoted";
  }
  if (top.kind === "single") return "singleQuoted";
  return top.kind === "braces" && top.word === "unquoted" ? "unquoted" : "doubleQuoted";
}

/**
 * Returns what a program that ends in this frame lacks, to complete "the command ends ...";
 * undefined for nothing.
 */
function missingEnd(top: ShellFrame): string | undefined {
  switch (top.kind) {
    case "command":
      if (top.substituted) return "inside $(";
      return top.awaitedHereDocuments.length > 0 ? "before its here-document begins" : undefined;
    case "single":
    case "ansi":
      return "inside single quotes";
    case "double":
    case "quotesInBraces":
      return "inside double quotes";
    case "backquotes":
      return "inside backquotes";
    case "braces":
      return "inside ${";
    case "arithmetic":
      return "inside $((";
    case "comment":
    case "hereDocument":
      return undefined;
  }
}
