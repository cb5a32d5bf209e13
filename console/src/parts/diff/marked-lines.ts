import { MOST_LINES, type PatchLine, type PatchPlace } from "./patch-lines.ts";

/** Lines of one side that are marked by the keyboard: from the one where it began to the one that has the focus. */
export interface MarkedLines {
  readonly isOld: boolean;
  readonly from: number;
  readonly to: number;
}

/** Returns the line whose number has the focus. */
export function focusedLine(root: ShadowRoot): MarkedLines | undefined {
  const number = root.activeElement;
  if (!(number instanceof HTMLElement && number.role)) return undefined;
  const line = Number(number.dataset.columnNumber);
  return { isOld: number.dataset.lineType === "change-deletion", from: line, to: line };
}

/**
 * Returns marked lines with the next one, or without the last one where they shrink; undefined where the diff has no next
 * one with a number to go to, or a comment takes no more.
 */
export function markNext(
  lines: readonly PatchLine[],
  { isOld, from, to }: MarkedLines,
  by: 1 | -1,
): MarkedLines | undefined {
  const next = to + by;
  if (Math.abs(next - from) >= MOST_LINES) return undefined;
  // The numbers before the change are buttons only next to lines that are gone.
  const isThere = lines.some((line) => (isOld ? line.kind === "deleted" && line.old : line.new) === next);
  return isThere ? { isOld, from, to: next } : undefined;
}

/** Returns the place of marked lines. */
export const placeOf = ({ isOld, from, to }: MarkedLines): PatchPlace => ({
  isOld,
  first: Math.min(from, to),
  last: Math.max(from, to),
});

/** Moves the focus from the number of a line to that of the next row, or of the one before. */
export function focusNext(root: ShadowRoot, by: 1 | -1): void {
  const number = root.activeElement;
  const numbers = [...(number?.closest("[data-code]")?.querySelectorAll("[data-column-number][role]") ?? [])];
  const next = number ? numbers[numbers.indexOf(number) + by] : undefined;
  if (next instanceof HTMLElement) next.focus();
}
