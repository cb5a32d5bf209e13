import { type RefObject, useLayoutEffect, useState } from "react";

/** What a list of rows of one height draws: from and to are places of rows, `to` excluded. */
export interface DrawnRange {
  readonly from: number;
  readonly to: number;
  /** Pixels of all rows, drawn or not. */
  readonly height: number;
  /** Pixels above the first drawn row. */
  readonly offset: number;
}

/**
 * Follows which rows of an element that scrolls are in sight, so that only these are drawn, and `spare` ones above and
 * below, so that scrolling shows no gap.
 */
export function useDrawnRange(
  frame: RefObject<HTMLElement | null>,
  rows: number,
  { rowHeight, spare }: { readonly rowHeight: number; readonly spare: number },
): DrawnRange {
  const [sight, setSight] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const look = () => {
      const next = { top: element.scrollTop, height: element.clientHeight };
      setSight((before) => (before.top === next.top && before.height === next.height ? before : next));
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [frame]);
  const from = Math.max(0, Math.min(rows, Math.floor(sight.top / rowHeight)) - spare);
  const to = Math.min(rows, Math.ceil((sight.top + sight.height) / rowHeight) + spare);
  return { from, to: Math.max(from, to), height: rows * rowHeight, offset: from * rowHeight };
}
