/** A line of a unified diff. */
export interface PatchLine {
  readonly kind: "hunk" | "same" | "added" | "deleted";
  readonly text: string;
  /** Its number before and after the change, from 1; undefined on the side that does not have it. */
  readonly old: number | undefined;
  readonly new: number | undefined;
}

/** Returns the lines of a unified diff; what stands before the first hunk is left out. */
export function patchLines(patch: string): PatchLine[] {
  const lines: PatchLine[] = [];
  let [old, next, isInHunk] = [0, 0, false];
  for (const line of patch.split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      [old, next, isInHunk] = [Number(hunk[1]), Number(hunk[2]), true];
      lines.push({ kind: "hunk", text: line, old: undefined, new: undefined });
    } else if (!isInHunk) {
      // A heading of the file.
    } else if (line.startsWith("+")) {
      lines.push({ kind: "added", text: line.slice(1), old: undefined, new: next++ });
    } else if (line.startsWith("-")) {
      lines.push({ kind: "deleted", text: line.slice(1), old: old++, new: undefined });
    } else if (line.startsWith(" ")) {
      lines.push({ kind: "same", text: line.slice(1), old: old++, new: next++ });
    } else if (line.startsWith("\\")) {
      lines.push({ kind: "hunk", text: line.slice(2), old: undefined, new: undefined });
    }
  }
  return lines;
}
