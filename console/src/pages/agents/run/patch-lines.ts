/** A line of a unified diff. */
export interface PatchLine {
  readonly kind: "hunk" | "same" | "added" | "deleted";
  readonly text: string;
  /** Its number before and after the change, from 1; undefined on the side that does not have it. */
  readonly old: number | undefined;
  readonly new: number | undefined;
}

/** Returns the lines of a unified diff; what comes before the first hunk is left out. */
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

/** Two lines next to each other: as it was, and as it is; undefined where the side has none. */
export interface LinePair {
  readonly left: PatchLine | undefined;
  readonly right: PatchLine | undefined;
}

/** Returns the lines of a diff as pairs: what was deleted is next to what was added in its place. */
export function linePairs(lines: readonly PatchLine[]): LinePair[] {
  const pairs: LinePair[] = [];
  let deleted: PatchLine[] = [];
  let added: PatchLine[] = [];
  const end = () => {
    for (let at = 0; at < Math.max(deleted.length, added.length); at++) {
      pairs.push({ left: deleted[at], right: added[at] });
    }
    deleted = [];
    added = [];
  };
  for (const line of lines) {
    if (line.kind === "deleted") {
      // Lines that are deleted after some were added begin another change.
      if (added.length > 0) end();
      deleted.push(line);
    } else if (line.kind === "added") added.push(line);
    else {
      end();
      pairs.push({ left: line, right: line });
    }
  }
  end();
  return pairs;
}
