import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import type { ReachableServer } from "../harness/server.ts";
import { originOf, signInLink } from "../harness/session.ts";
import { until } from "../harness/until.ts";

/** Debian's browser, unless the variable names another. */
export const CHROMIUM = process.env.TEST_CHROMIUM ?? "/usr/bin/chromium";

/** Milliseconds until something must be on a page; long, since other tests may have the machine. */
const WAIT_MS = 120_000;

/** Without a sandbox of its own, which root may not have, and without calls of its own to anybody. */
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

let browser: Promise<Browser> | undefined;
const contexts: BrowserContext[] = [];

/** A person's page, and everything that went wrong in it. */
export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Lines of breaches of the policy and errors of scripts, which no page may have. */
  readonly faults: string[];
  /** The origin of the server's sessions. */
  readonly origin: string;
}

/** Opens a browser of its own, with nobody signed in. */
export async function open(server: Pick<ReachableServer, "url">): Promise<Visit> {
  browser ??= chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS, timeout: 2 * WAIT_MS });
  const context = await (await browser).newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: "reduce",
  });
  contexts.push(context);
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => {
    // A size that was not reported is reported with the next frame.
    if (!/ResizeObserver loop/.test(error.message)) faults.push(String(error.stack ?? error));
  });
  page.on("console", (message) => {
    const text = message.text();
    // Failed calls are shown by the page; the browser's own line about them is no fault.
    if (message.type() === "error" && !text.startsWith("Failed to load resource")) faults.push(text);
  });
  return { page, context, faults, origin: originOf(server) };
}

/** Opens a browser in which a member is signed in, by a link as the command line prints it. */
export async function openAs(
  server: ReachableServer & { readonly dataDir: string },
  email: string,
): Promise<Visit> {
  const visit = await open(server);
  const { page, origin } = visit;
  await page.goto(`${server.url}/sign-in#${await signInLink(server, email)}`);
  await page.getByRole("button", { name: /^Sign in as/ }).click();
  await page.waitForURL(`${origin}/`);
  await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
  return visit;
}

/** Waits until a field has a value. */
export async function valued(field: Locator, value: string): Promise<void> {
  await until(
    () => field.inputValue(),
    (found) => found === value,
    WAIT_MS,
  );
}

/** Waits until nothing on a page, whose frame is drawn by then, matches a selector, of however many there were. */
export const without = (page: Page, selector: string): Promise<void> =>
  page.locator(`:root:has(h1):not(:has(${selector}))`).waitFor({ state: "attached" });

/** Waits until a part of a page has as many charts as it should, each with a curve in the colour of one of its keys. */
export async function drawnIn(part: Locator, count: number): Promise<void> {
  await until(
    () => part.locator("figure.chart").evaluateAll(inksOf),
    (inks) => inks.length === count && inks.every((ink) => ink > 20),
    WAIT_MS,
  );
}

/** Counts, in a page, the points of each chart's canvas that have the colour of one of its keys. */
function inksOf(charts: Element[]): number[] {
  return charts.map((chart) => {
    const canvas = chart.querySelector("canvas");
    const drawing = canvas?.getContext("2d");
    if (!canvas || !drawing || canvas.width === 0) return 0;
    const { data } = drawing.getImageData(0, 0, canvas.width, canvas.height);
    const inks = [...chart.querySelectorAll("figcaption svg")].map((key) => {
      const [red = 0, green = 0, blue = 0] = (getComputedStyle(key).color.match(/\d+/g) ?? []).map(Number);
      let ink = 0;
      for (let at = 0; at < data.length; at += 4) {
        const off = [red, green, blue].map((part, channel) => Math.abs(part - (data[at + channel] ?? 0)));
        if ((data[at + 3] ?? 0) > 100 && Math.max(...off) < 24) ink++;
      }
      return ink;
    });
    return Math.max(...inks);
  });
}

/** Ends what the tests of a file have opened. */
export async function closeAll(): Promise<void> {
  await Promise.all(contexts.splice(0).map((context) => context.close()));
  await (await browser)?.close();
  browser = undefined;
}
