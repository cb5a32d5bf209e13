import { type RefObject, useLayoutEffect, useState } from "react";

/** The rendered rows of a list with rows of equal height: `from` and `to` are row indexes, `to` excluded. */
export interface DrawnRange {
  readonly from: number;
  readonly to: number;
  /** Height of all rows in pixels, rendered or not. */
  readonly height: number;
  /** Pixels above the first rendered row. */
  readonly offset: number;
}

/**
 * Returns which rows of a scrolling element to render: the visible ones, and `spare` more above and below, so that
 * scrolling shows no gap.
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
