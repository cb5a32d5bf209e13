import { useLayoutEffect, useRef, useState } from "react";

/** Pixels from the bottom within which a page follows what is new. */
const BOTTOM_PIXELS = 120;

/**
 * Keeps the end in sight while the person is there; one who has scrolled up is left where they are, and what comes
 * meanwhile is marked.
 * @param total how many things there are
 */
export function useFollowedEnd(total: number) {
  const content = useRef<HTMLDivElement>(null);
  const newest = useRef(total);
  newest.current = total;
  /** How many things there were when the person scrolled up; undefined before. */
  const [mark, setMark] = useState<number>();
  const [isAway, setAway] = useState(false);
  useLayoutEffect(() => {
    let isAtEnd = true;
    let last = window.scrollY;
    const page = document.documentElement;
    const follow = (follows: boolean) => {
      isAtEnd = follows;
      // The browser holds a person who reads further up where they are; at the end that would look like scrolling up,
      // when earlier things make room for new ones.
      page.style.overflowAnchor = follows ? "none" : "";
    };
    follow(true);
    const look = () => {
      const isNear = page.scrollHeight - page.clientHeight - window.scrollY < BOTTOM_PIXELS;
      // Who does not scroll up does not leave: what has come below was not there before.
      const isStill = isNear || (isAtEnd && window.scrollY >= last);
      last = window.scrollY;
      if (isStill === isAtEnd) return;
      follow(isStill);
      setAway(!isAtEnd);
      // What came meanwhile stays marked until the person leaves the end again.
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
    /** The number of the first thing that came since the person scrolled up, from 0; undefined where none has. */
    firstNew: mark !== undefined && mark < total ? mark : undefined,
    /** How many have come and are out of sight. */
    newCount: isAway && mark !== undefined ? Math.max(0, total - mark) : 0,
    toEnd: () => window.scrollTo({ top: document.documentElement.scrollHeight }),
  };
}
