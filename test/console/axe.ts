import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect } from "@jest/globals";
import type { Page } from "playwright-core";
import { until } from "../harness/until.ts";

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Looks at a page that draws while it is looked at: what two more looks do not find was of a moment. */
const LOOKS = 3;

/** Returns what axe-core finds to be serious or critical: one line each, with the first element. */
export async function barriers(page: Page): Promise<string[]> {
  let found: string[] = [];
  for (let looks = 0; looks < LOOKS; looks++) {
    await drawn(page);
    found = await violations(page);
    if (found.length === 0) break;
  }
  return found;
}

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

/** Waits for two frames, after which what was set before is drawn. */
async function drawn(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  );
}

async function violations(page: Page): Promise<string[]> {
  // Through the debugger: the page's policy runs no script that is not its own.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: SOURCE });
  const { result } = await session.send("Runtime.evaluate", {
    awaitPromise: true,
    returnByValue: true,
    expression: `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => id + ": " + nodes[0].html + " " + (nodes[0].any[0]?.message ?? "")))`,
  });
  await session.detach();
  return result.value as string[];
}

/** Has axe-core look at a page: wide in the light theme and narrow in the dark one, where it must not scroll sideways. */
export async function look(page: Page): Promise<void> {
  for (const [colorScheme, width] of [
    ["light", 1280],
    ["dark", 380],
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
