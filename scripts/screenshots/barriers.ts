import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

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

/** Waits for two frames, after which what was set before is drawn. */
export async function drawn(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  );
}

async function violations(page: Page): Promise<string[]> {
  // Through the debugger: the page's policy runs no script that is not its own.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: SOURCE });
  // Without a copy of the style sheets of diffs, which the policy refuses: the rules that want one are about sound and the
  // way a screen is held.
  const { result } = await session.send("Runtime.evaluate", {
    awaitPromise: true,
    returnByValue: true,
    expression: `axe.run(document, { preload: false, resultTypes: ["violations"] }).then(({ violations }) => violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => id + ": " + nodes[0].html + " " + (nodes[0].any[0]?.message ?? "")))`,
  });
  await session.detach();
  return result.value as string[];
}
