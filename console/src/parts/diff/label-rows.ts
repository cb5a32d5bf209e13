/** What the numbers of lines are buttons for. */
const DEED = "Comment on this line";

/**
 * Makes what @pierre/diffs has drawn fit for readers of screens: the number of each line is a button that says which line
 * it is, where lines can be chosen, and else left out, since numbers and lines are in columns of their own.
 */
export function labelRows(root: ShadowRoot, canChoose: boolean): void {
  for (const [column, code] of root.querySelectorAll("[data-code]").entries()) {
    const isOldSide = code.hasAttribute("data-deletions");
    if (!canChoose) {
      code.querySelector("[data-gutter]")?.setAttribute("aria-hidden", "true");
      continue;
    }
    for (const line of code.querySelectorAll<HTMLElement>("[data-line]:not([id])")) {
      line.id = `line-${column}-${line.dataset.lineIndex}`;
    }
    for (const number of code.querySelectorAll<HTMLElement>("[data-column-number]:not([role])")) {
      const isGone = number.dataset.lineType === "change-deletion";
      // Next to it is the same line with the button.
      if (isOldSide && !isGone) continue;
      number.role = "button";
      number.tabIndex = 0;
      number.title = DEED;
      number.ariaLabel = `Comment on line ${number.dataset.columnNumber}${isGone ? " before the change" : ""}`;
      number.setAttribute("aria-keyshortcuts", "Shift+ArrowDown Shift+ArrowUp");
      number.setAttribute("aria-describedby", `line-${column}-${number.dataset.lineIndex}`);
    }
  }
}

/** Returns what finds the number of a line again that has the focus, once its row is drawn again. */
export function focusedRow(root: ShadowRoot | null): (() => void) | undefined {
  const number = root?.activeElement;
  if (!(root && number instanceof HTMLElement && number.dataset.columnNumber)) return undefined;
  const { columnNumber, lineIndex, lineType } = number.dataset;
  const place = `[data-column-number="${columnNumber}"][data-line-index="${lineIndex}"][data-line-type="${lineType}"]`;
  return () => {
    if (!number.isConnected)
      root.querySelector<HTMLElement>(`${place}[role]`)?.focus({ preventScroll: true });
  };
}

/** Gives the focus to the number of a line, where that is drawn. */
export function focusLine(root: ShadowRoot, isOld: boolean, line: number, options?: FocusOptions): void {
  const numbers = [...root.querySelectorAll<HTMLElement>(`[data-column-number="${line}"][role]`)];
  const isThere = ({ dataset }: HTMLElement) => (dataset.lineType === "change-deletion") === isOld;
  numbers.find(isThere)?.focus(options);
}
