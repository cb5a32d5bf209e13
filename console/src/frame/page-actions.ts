import type { Target } from "./use-found.ts";

/** What a page offers: the actions in its header and section headings, and its tabs. */
const OFFERED = [".page-actions", ".section-head", ".tabs"]
  .flatMap((place) => [`#content ${place} a`, `#content ${place} button`])
  .join(", ");

/** Returns the actions of the visible page, with their labels. Running one clicks its element. */
export function pageActions(): readonly Target[] {
  const targets = new Map<string, Target>();
  for (const element of document.querySelectorAll<HTMLElement>(OFFERED)) {
    const label = (element.getAttribute("aria-label") ?? element.textContent).trim();
    const isShown = element.checkVisibility();
    if (label === "" || !isShown || element.matches(":disabled") || targets.has(label)) continue;
    const run = () => {
      // A dialog that it opens returns the focus to it.
      element.focus();
      element.click();
    };
    targets.set(label, { key: `action-${targets.size}`, label, hint: "On this page", icon: "execute", run });
  }
  return [...targets.values()];
}
