import { useEffect, useRef, useState } from "react";

/** The height in pixels of the bar above each page, which covers what scrolls below it. */
const TOP_BAR = 44;

/**
 * Holds back rows that arrive at the top of a list while a person has scrolled down, so that the rows they read do
 * not move. Back at the top, the list shows all.
 */
export function useHeldRows<R>(rows: readonly R[], keyOf: (row: R) => string) {
  const [isAtTop, setAtTop] = useState(true);
  const [first, setFirst] = useState<string>();
  const newest = rows[0] && keyOf(rows[0]);
  const at = rows.findIndex((row) => keyOf(row) === first);
  // In another list, such as after a filter changed, no row was shown before.
  if ((isAtTop || at === -1) && first !== newest) setFirst(newest);
  const held = isAtTop ? 0 : Math.max(0, at);
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current: element } = top;
    if (!element) return;
    const observer = new IntersectionObserver(
      ([entry]) => entry && setAtTop(entry.isIntersecting || entry.boundingClientRect.top > TOP_BAR),
      { rootMargin: `-${TOP_BAR}px 0px 0px 0px` },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return {
    shown: held === 0 ? rows : rows.slice(held),
    held,
    /** The element above the list. When it is visible, the list is at its top. */
    top,
    show() {
      setAtTop(true);
      top.current?.scrollIntoView();
    },
  };
}
