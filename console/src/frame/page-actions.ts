import type { Target } from "./use-found.ts";

/** What a page offers at its head, at the heads of its parts, and as its tabs. */
const OFFERED = [".page-actions", ".section-head", ".tabs"]
  .flatMap((place) => [`#content ${place} a`, `#content ${place} button`])
  .join(", ");

/** Returns what can be done on the page that is shown, named as it is there: each does what a click on it does. */
export function pageActions(): readonly Target[] {
  const targets = new Map<string, Target>();
  for (const element of document.querySelectorAll<HTMLElement>(OFFERED)) {
    const label = (element.getAttribute("aria-label") ?? element.textContent).trim();
    const isShown = element.checkVisibility();
    if (label === "" || !isShown || element.matches(":disabled") || targets.has(label)) continue;
    const run = () => {
      // What it opens gives the focus back to it.
      element.focus();
      element.click();
    };
    targets.set(label, { key: `action-${targets.size}`, label, hint: "On this page", icon: "execute", run });
  }
  return [...targets.values()];
}
