import { useLayoutEffect, useRef, useState } from "react";

/** Distance from the bottom, in pixels, within which a page follows new content. */
const BOTTOM_PIXELS = 120;

/**
 * Keeps the end in view while the person is there. A person who has scrolled up is not moved, and what arrives in the
 * meantime is marked.
 * @param total number of items
 */
export function useFollowedEnd(total: number) {
  const content = useRef<HTMLDivElement>(null);
  const newest = useRef(total);
  newest.current = total;
  /** Number of items when the person scrolled up; undefined before that. */
  const [mark, setMark] = useState<number>();
  const [isAway, setAway] = useState(false);
  useLayoutEffect(() => {
    let isAtEnd = true;
    let last = window.scrollY;
    const page = document.documentElement;
    const follow = (follows: boolean) => {
      isAtEnd = follows;
      // Scroll anchoring helps a person who reads further up. At the end it would look like scrolling up whenever
      // earlier items shrink.
      page.style.overflowAnchor = follows ? "none" : "";
    };
    follow(true);
    const look = () => {
      const isNear = page.scrollHeight - page.clientHeight - window.scrollY < BOTTOM_PIXELS;
      // Only scrolling up leaves the end: content that arrived below was not there before.
      const isStill = isNear || (isAtEnd && window.scrollY >= last);
      last = window.scrollY;
      if (isStill === isAtEnd) return;
      follow(isStill);
      setAway(!isAtEnd);
      // New items remain marked until the person leaves the end again.
      const now = newest.current;
      setMark((before) => (!isAtEnd ? now : before === now ? undefined : before));
    };
    const observer = new ResizeObserver(() => {
      if (isAtEnd) window.scrollTo({ top: page.scrollHeight });
    });
    if (content.current) observer.observe(content.current);
    window.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      page.style.overflowAnchor = "";
      window.removeEventListener("scroll", look);
    };
  }, []);
  return {
    content,
    /** Index of the first item that arrived after the person scrolled up; undefined for none. */
    firstNew: mark !== undefined && mark < total ? mark : undefined,
    /** Number of new items that are not visible. */
    newCount: isAway && mark !== undefined ? Math.max(0, total - mark) : 0,
    toEnd: () => window.scrollTo({ top: document.documentElement.scrollHeight }),
  };
}
