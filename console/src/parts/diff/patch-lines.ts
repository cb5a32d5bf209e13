/** A line of a unified diff. */
export interface PatchLine {
  readonly kind: "hunk" | "same" | "added" | "deleted" | "note";
  readonly text: string;
  /** Its number before and after the change, from 1; undefined on the side that does not have the line. */
  readonly old: number | undefined;
  readonly new: number | undefined;
}

/** Lines of one side of a diff, by their numbers on that side. */
export interface PatchPlace {
  readonly isOld: boolean;
  readonly first: number;
  readonly last: number;
}

/** Returns the lines of a unified diff. Skips what comes before the first hunk. */
export function patchLines(patch: string): PatchLine[] {
  const lines: PatchLine[] = [];
  let [old, next, isInHunk] = [0, 0, false];
  for (const line of patch.split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      [old, next, isInHunk] = [Number(hunk[1]), Number(hunk[2]), true];
      lines.push({ kind: "hunk", text: line, old, new: next });
    } else if (!isInHunk) {
      // A header of the file.
    } else if (line.startsWith("+")) {
      lines.push({ kind: "added", text: line.slice(1), old: undefined, new: next++ });
    } else if (line.startsWith("-")) {
      lines.push({ kind: "deleted", text: line.slice(1), old: old++, new: undefined });
    } else if (line.startsWith(" ")) {
      lines.push({ kind: "same", text: line.slice(1), old: old++, new: next++ });
    } else if (line.startsWith("\\")) {
      lines.push({ kind: "note", text: line.slice(2), old: undefined, new: undefined });
    }
  }
  return lines;
}

/** Maximum lines of a comment (contract). */
export const MAX_LINES = 20;

/**
 * Returns the place of chosen lines. Lines that are the same on both sides are placed on the new side. Only the last
 * line counts when the diff does not have all of them or they are too many for a comment.
 */
export function placeIn(lines: readonly PatchLine[], { isOld, first, last }: PatchPlace): PatchPlace {
  const chosen = linesAt(lines, { isOld, first, last });
  const [from, to] = [chosen[0], chosen.at(-1)];
  if (chosen.length !== last - first + 1 || chosen.length > MAX_LINES) {
    return first === last ? { isOld, first, last } : placeIn(lines, { isOld, first: last, last });
  }
  const isSame = chosen.every(({ kind }) => kind === "same");
  if (!isOld || !isSame || from?.new === undefined || to?.new === undefined) return { isOld, first, last };
  return { isOld: false, first: from.new, last: to.new };
}

/** Returns the name of a range of lines. */
export const linesName = (first: number, last: number): string =>
  first === last ? `line ${first}` : `lines ${first} to ${last}`;

/** Returns the text of the lines at a place, as far as the diff contains them. */
export const quoteOf = (lines: readonly PatchLine[], place: PatchPlace): string =>
  linesAt(lines, place)
    .map(({ text }) => text)
    .join("\n");

const linesAt = (lines: readonly PatchLine[], { isOld, first, last }: PatchPlace): PatchLine[] =>
  lines.filter((line) => {
    const number = (isOld ? line.old : line.new) ?? 0;
    return line.kind !== "hunk" && first <= number && number <= last;
  });

/** Characters that are invisible, or that hide or reorder text. */
const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Returns the text with every character that could deceive a reader made visible, such as "‹202e›". */
export const visible = (text: string): string =>
  text.replace(HIDDEN, (character) => {
    if (character === "\t" || character === "\n") return character;
    const code = character.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `‹${code.toString(16).padStart(4, "0")}›`;
  });

const SIGNS = { added: "+", deleted: "-", same: " " } as const;

/**
 * Returns lines as a patch of one file, for a program that trusts its hunk headers: their lengths are counted again,
 * and all characters are visible.
 */
export function patchOf(lines: readonly PatchLine[]): string {
  const out: string[] = [];
  let [body, olds, news]: [string[], number, number] = [[], 0, 0];
  // Backwards, so that the length of a hunk is known at its header.
  for (const line of lines.toReversed()) {
    if (line.kind === "hunk") {
      const context = visible(line.text.replace(/^@@.*?@@/, ""));
      // Omits a hunk without lines.
      if (olds + news > 0) out.push(...body, `@@ -${line.old},${olds} +${line.new},${news} @@${context}`);
      [body, olds, news] = [[], 0, 0];
    } else if (line.kind === "note") body.push(`\\ ${visible(line.text)}`);
    else {
      body.push(SIGNS[line.kind] + visible(line.text));
      if (line.old !== undefined) olds++;
      if (line.new !== undefined) news++;
    }
  }
  return ["--- file", "+++ file", ...out.reverse(), ""].join("\n");
}
