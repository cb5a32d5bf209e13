/** The action of the buttons on line numbers. */
const DEED = "Comment on this line";

/**
 * Makes the output of @pierre/diffs accessible to screen readers. When lines can be chosen, each line number becomes
 * a button that names its line. Otherwise the numbers are hidden from them, because numbers and lines are in separate
 * columns.
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
      // The same line in the other column has the button.
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

/**
 * Returns a function that focuses the same line number again after its row was rendered again; undefined without
 * focus.
 */
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

/** Focuses the number of a line, if it is rendered. */
export function focusLine(root: ShadowRoot, isOld: boolean, line: number, options?: FocusOptions): void {
  const numbers = [...root.querySelectorAll<HTMLElement>(`[data-column-number="${line}"][role]`)];
  const isThere = ({ dataset }: HTMLElement) => (dataset.lineType === "change-deletion") === isOld;
  numbers.find(isThere)?.focus(options);
}
