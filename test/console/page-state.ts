import type { BrowserContext, Page } from "playwright-core";
import { until } from "../harness/until.ts";

/**
 * Returns everything that a page holds, as text: what is drawn and typed, what its storages, its cookies and its history
 * keep, and every string of its scripts' memory, after the browser has collected what nothing refers to.
 */
export async function stateOf(page: Page, context: BrowserContext): Promise<string> {
  const shown = await page.evaluate(() =>
    JSON.stringify([
      document.documentElement.outerHTML,
      [...document.querySelectorAll("input, textarea")].map((field) => (field as HTMLInputElement).value),
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      history.state,
      location.href,
    ]),
  );
  return `${shown}\n${await memoryOf(page, context)}`;
}

async function memoryOf(page: Page, context: BrowserContext): Promise<string> {
  const session = await context.newCDPSession(page);
  const chunks: string[] = [];
  session.on("HeapProfiler.addHeapSnapshotChunk", ({ chunk }) => chunks.push(chunk));
  await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  await session.detach();
  return chunks.join("");
}

/** Milliseconds in which a page lets go of what it has drawn and read: each draw takes the place of an earlier one. */
const FORGOTTEN_MS = 120_000;

/** Expects that nothing of a page holds any of some texts, at once or when its scripts and its browser have cleared up. */
export async function expectForgotten(
  page: Page,
  context: BrowserContext,
  ...texts: string[]
): Promise<void> {
  await until(
    async () => {
      const state = await stateOf(page, context);
      return texts.filter((text) => state.includes(text));
    },
    (held) => held.length === 0,
    FORGOTTEN_MS,
  );
}

/** Collects what the server answers a page, by operation; `answers` waits for those that are under way. */
export function collectAnswers(page: Page) {
  const answers: Promise<readonly [operation: string, text: string]>[] = [];
  page.on("response", (response) => {
    const operation = /\/api\/service\.v1\.(\w+\/\w+)$/.exec(new URL(response.url()).pathname)?.[1];
    // Streams end with their page; what they bring is asked for by other operations, too.
    if (operation === undefined || /\/Watch/.test(operation)) return;
    answers.push(
      response.text().then(
        (text) => [operation, text] as const,
        // The page was left meanwhile.
        () => [operation, ""] as const,
      ),
    );
  });
  return () => Promise.all(answers);
}
