import { useEffect, useState } from "react";

/** Returns what has the focus, and of an item of a menu, which is gone once it was chosen, what has opened the menu. */
function focused(): Element | null {
  const { activeElement } = document;
  const opener = activeElement?.closest("[role=menu]")?.getAttribute("aria-labelledby");
  return opener ? document.getElementById(opener) : activeElement;
}

/**
 * Has the focus go back to where it was when a window over the page was opened, once that is closed. Mantine does so only
 * for windows that are drawn before they are opened.
 */
export function useFocusBack(): void {
  const [before] = useState(focused);
  useEffect(
    () => () => {
      if (before instanceof HTMLElement && document.activeElement === document.body) before.focus();
    },
    [before],
  );
}
