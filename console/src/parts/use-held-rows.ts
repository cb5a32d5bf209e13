import { useEffect, useRef, useState } from "react";

/** The height of the bar above each page, which covers what scrolls below it, in pixels. */
const TOP_BAR = 44;

/**
 * Holds back the rows that come before the first one of a list while a person has scrolled past it, so that the rows which
 * they read do not move. Back at its top, the list shows all.
 */
export function useHeldRows<R>(rows: readonly R[], keyOf: (row: R) => string) {
  const [isAtTop, setAtTop] = useState(true);
  const [first, setFirst] = useState<string>();
  const newest = rows[0] && keyOf(rows[0]);
  const at = rows.findIndex((row) => keyOf(row) === first);
  // Of another list, such as after a filter was set, nothing was shown yet.
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
    /** The element above the list: in sight, the list is at its top. */
    top,
    show() {
      setAtTop(true);
      top.current?.scrollIntoView();
    },
  };
}
