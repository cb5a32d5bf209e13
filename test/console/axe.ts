import { expect } from "@jest/globals";
import type { Page } from "playwright-core";
import { barriers } from "../../scripts/screenshots/barriers.ts";
import { until } from "../harness/until.ts";

/** Expects that neither a page nor a list in it scrolls sideways, once it is drawn at its width. */
export async function expectNoOverflow(page: Page): Promise<void> {
  await until(
    () =>
      page.evaluate(() =>
        [document.documentElement, ...document.querySelectorAll("div.table-frame")]
          .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
          .map((each) => each.querySelector("table")?.ariaLabel ?? each.tagName),
      ),
    (wide) => wide.length === 0,
    30_000,
  );
}

/** Has axe-core look at a page: wide in the light theme and narrow in the dark one, where it must not scroll sideways. */
export async function look(page: Page): Promise<void> {
  for (const [colorScheme, width] of [
    ["light", 1280],
    ["dark", 360],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    // The page's script learns of it by an event.
    await page.locator(`:root[data-mantine-color-scheme="${colorScheme}"]`).waitFor({ state: "attached" });
    expect([colorScheme, await barriers(page)]).toEqual([colorScheme, []]);
    await expectNoOverflow(page);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
}
