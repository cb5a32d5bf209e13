import { MAX_LINES, type PatchLine, type PatchPlace } from "./patch-lines.ts";

/**
 * Lines of one side that are selected with the keyboard: from the one where the selection began to the one with the
 * focus.
 */
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
 * Returns the selection after moving its end by one line. Undefined when the diff has no such line with a number, or
 * the selection has reached the maximum for a comment.
 */
export function markNext(
  lines: readonly PatchLine[],
  { isOld, from, to }: MarkedLines,
  by: 1 | -1,
): MarkedLines | undefined {
  const next = to + by;
  if (Math.abs(next - from) >= MAX_LINES) return undefined;
  // Numbers before the change are buttons only for deleted lines.
  const isThere = lines.some((line) => (isOld ? line.kind === "deleted" && line.old : line.new) === next);
  return isThere ? { isOld, from, to: next } : undefined;
}

/** Returns the place of selected lines. */
export const placeOf = ({ isOld, from, to }: MarkedLines): PatchPlace => ({
  isOld,
  first: Math.min(from, to),
  last: Math.max(from, to),
});

/** Moves the focus from a line number to that of the next or previous row. */
export function focusNext(root: ShadowRoot, by: 1 | -1): void {
  const number = root.activeElement;
  const numbers = [...(number?.closest("[data-code]")?.querySelectorAll("[data-column-number][role]") ?? [])];
  const next = number ? numbers[numbers.indexOf(number) + by] : undefined;
  if (next instanceof HTMLElement) next.focus();
}
