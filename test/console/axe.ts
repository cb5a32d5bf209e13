import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect } from "@jest/globals";
import type { Page } from "playwright-core";

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core found to be serious or critical: one line each, with the first element. */
export async function barriers(page: Page): Promise<string[]> {
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
    expect([colorScheme, await barriers(page)]).toEqual([colorScheme, []]);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect([width, overflow]).toEqual([width, 0]);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
}
