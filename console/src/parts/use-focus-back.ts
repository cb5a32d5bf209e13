import { useEffect, useState } from "react";

/**
 * Returns the focused element. For a menu item, which disappears once chosen, returns the button that opened the
 * menu.
 */
function focused(): Element | null {
  const { activeElement } = document;
  const opener = activeElement?.closest("[role=menu]")?.getAttribute("aria-labelledby");
  return opener ? document.getElementById(opener) : activeElement;
}

/**
 * Returns the focus to where it was before a window opened over the page, once the window closes. Mantine does so
 * only for windows that are rendered before they open.
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
