import { AgentReviewComment_Side as Side } from "#gen/service/v1/agent_review_pb.js";
import { withoutDeceptiveText } from "../../text/deceptive-text.ts";

/** Maximum number of characters of a line that are kept and compared (contract, AgentReviewComment.Quote). */
const MAX_LINE_CHARACTERS = 160;

/** Consecutive lines of one side of a file, as a hunk shows them. */
export interface ShownLines {
  /** Number of the first one, from 1. */
  readonly first: number;
  /** Each as {@link keptLine} returns it. */
  readonly lines: readonly string[];
}

/** Returns the part of a line that is kept and compared. */
export function keptLine(line: string): string {
  // A character has at most two code units, so the rest of a very long line can be ignored.
  const cleaned = withoutDeceptiveText(line).slice(0, 2 * MAX_LINE_CHARACTERS);
  if (cleaned.length <= MAX_LINE_CHARACTERS) return cleaned;
  return [...cleaned].slice(0, MAX_LINE_CHARACTERS).join("");
}

/** Returns the side that a comment is on. */
export function sideOf(requested: Side): Side.OLD | Side.NEW {
  return requested === Side.OLD ? Side.OLD : Side.NEW;
}

/** Returns the lines of one side that a patch shows, hunk by hunk; the patch has the form of EnvironmentFileDiff. */
export function shownLines(patch: string, side: Side.OLD | Side.NEW): ShownLines[] {
  const other = side === Side.OLD ? "+" : "-";
  const hunks: { readonly first: number; readonly lines: string[] }[] = [];
  for (const line of patch.split("\n")) {
    const header = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (header) {
      hunks.push({ first: Number(header[side === Side.OLD ? 1 : 2]), lines: [] });
      continue;
    }
    const mark = line.charAt(0);
    // Skips the empty text after the last line break, and the note that a file ends without one.
    if (mark === "" || mark === "\\" || mark === other) continue;
    hunks.at(-1)?.lines.push(keptLine(line.slice(1)));
  }
  return hunks;
}
