/**
 * Takes pictures of every page of the console and of what opens over them, to be looked at: in both themes, and at 380 px.
 *
 *   npm start -- --sample-data                               prints a link to sign in
 *   node scripts/screenshots.ts LINK docs/console/pages      FOLDER/PAGE/{light,dark,narrow}.jpg
 *   node scripts/screenshots.ts LINK FOLDER run              only pages whose names begin with "run"
 *   node scripts/screenshots.ts LINK docs/console/front front  the pictures that README.md and docs/console show, as PNG files;
 *                                                            on the machine of the server
 *
 * What the sample data has nothing of, such as webhooks, is made first. Fails where a page, or a table in it, is wider than
 * its window, at some widths of which no picture is taken, too, and where axe-core finds something serious.
 * Needs Chromium; TEST_CHROMIUM names another than Debian's.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import { barriers, drawn } from "./screenshots/barriers.ts";
import { completeFront } from "./screenshots/front.ts";
import { complete, createInvite } from "./screenshots/sample.ts";
import { emptied, fromElsewhere, windows } from "./screenshots/windows.ts";

const VIEWS = [
  { name: "light", colorScheme: "light", width: 1280 },
  { name: "dark", colorScheme: "dark", width: 1280 },
  { name: "narrow", colorScheme: "light", width: 380 },
] as const;
const HEIGHT = 800;
/** Until something must be on a page; long, since the tests of the console have the machine at the same time. */
const WAIT_MS = 120_000;
/** Widths of which no picture is taken: the least one, an enlargement to 200 %, and those about where the sidebar comes. */
const OTHER_WIDTHS = [360, 640, 768, 900, 1024];
/** Small, and still legible. */
const JPEG = { type: "jpeg", quality: 54 } as const;

/** The headings to which pages are scrolled, by the names of the pages. */
const HEADINGS: Readonly<Record<string, string>> = {
  "organization-retention": "What retention removes now",
  "home-week": "Last 7 days",
  "organization-server-curves": "Since this page was opened",
};

/** In the place of the beginning of names. */
const FRONT = "front";

const [link, folder, begin = ""] = process.argv.slice(2);
if (!link || !folder) throw new Error("usage: node scripts/screenshots.ts LINK FOLDER [BEGINNING OF NAMES]");

const browser = await chromium.launch({
  executablePath: process.env.TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP *.localhost 127.0.0.1"],
  timeout: WAIT_MS,
});
try {
  const page = await newPage();
  let faults = 0;
  if ("sign-in".startsWith(begin)) faults += await take(page, link, join(folder, "sign-in"));
  await page.goto(link);
  await page.getByRole("button", { name: /^Sign in as/ }).click();
  await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
  const { origin } = new URL(page.url());
  await complete(page);
  if (begin === FRONT) await takeFront(page, origin);
  const pages = Object.entries(await addresses(page, origin)).filter(([name]) => name.startsWith(begin));
  for (const [index, [name, path]] of pages.entries()) {
    process.stdout.write(`${index + 1}/${pages.length} ${name}\n`);
    faults += await take(page, origin + path, join(folder, name), { heading: HEADINGS[name] });
  }
  for (const { name, path, open } of windows(await placesOf(page, origin))) {
    if (!name.startsWith(begin)) continue;
    process.stdout.write(`${name}\n`);
    const heading = HEADINGS[name];
    faults += await take(page, origin + path, join(folder, name), { heading, open: () => open(page) });
  }
  if ("home-empty".startsWith(begin)) {
    const restore = await emptied(page);
    faults += await take(page, `${origin}/`, join(folder, "home-empty"));
    await restore();
  }
  if ("organization-join".startsWith(begin)) {
    const invite = `${origin}/organization/join#${await createInvite(page)}`;
    const restore = await fromElsewhere(page);
    faults += await take(page, invite, join(folder, "organization-join"));
    await restore();
    // The same address again would be no other page.
    await page.goto("about:blank");
    faults += await take(page, invite, join(folder, "organization-join-member"));
    const other = await newPage();
    faults += await take(other, invite, join(folder, "sign-in-join"));
  }
  if (faults > 0) process.exitCode = 1;
} finally {
  await browser.close();
}

/** Opens a page of a browser context of its own. */
async function newPage(): Promise<Page> {
  const page = await browser.newPage({ reducedMotion: "reduce" });
  page.setDefaultTimeout(WAIT_MS);
  return page;
}

/** Takes the pictures that pages of the documentation show. */
async function takeFront(page: Page, origin: string): Promise<void> {
  for (const { name, path, colorScheme, width, height, shows } of await completeFront(page)) {
    process.stdout.write(`${name}\n`);
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await page.goto(origin + path);
    await page.getByText(shows).first().waitFor();
    await page.locator("h1").waitFor();
    await page.waitForTimeout(1_000);
    await page.screenshot({ path: join(folder ?? "", `${name}.png`) });
  }
}

interface TakeOptions {
  /** Is scrolled to. */
  readonly heading?: string | undefined;
  /** Opens something over the page, which is then taken with it. */
  readonly open?: () => Promise<void>;
}

/**
 * Takes a page in each view.
 *
 * @returns the number of views with something that is wider than the window, or that axe-core finds to be serious
 */
async function take(
  page: Page,
  address: string,
  to: string,
  { heading, open }: TakeOptions = {},
): Promise<number> {
  mkdirSync(to, { recursive: true });
  await page.goto(address);
  await page.locator("h1").waitFor();
  // Names that are asked for one by one are dots until they come.
  await page.waitForFunction(
    () =>
      document.querySelector(".skeleton, .diff-waits") === null &&
      [...document.querySelectorAll("td")].every(
        ({ textContent }) => !/^(…|\.\.\.)$/.test(textContent ?? ""),
      ),
  );
  await page.setViewportSize({ width: VIEWS[0].width, height: HEIGHT });
  await open?.();
  let faults = 0;
  for (const { name, colorScheme, width } of VIEWS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: HEIGHT });
    // What follows the size of the window is drawn in the second frame.
    await drawn(page);
    // Fields take the colours of another theme little by little.
    await page.waitForTimeout(200);
    if (heading) await page.getByRole("heading", { name: heading }).evaluate((each) => each.scrollIntoView());
    await page.screenshot({ path: join(to, `${name}.jpg`), ...JPEG });
    const past = await tooWide(page, name);
    const found = await barriers(page);
    for (const barrier of found) process.stdout.write(`  ${name}: ${barrier}\n`);
    if (past + found.length > 0) faults++;
  }
  for (const width of OTHER_WIDTHS) {
    await page.setViewportSize({ width, height: HEIGHT });
    await drawn(page);
    if ((await tooWide(page, `${width} px`)) > 0) faults++;
  }
  return faults;
}

/** Counts what in a page is wider than its window, and says what that is. */
async function tooWide(page: Page, view: string): Promise<number> {
  const past = await page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll("div.table-frame")]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map((each) => each.querySelector(":scope > table")?.ariaLabel ?? "the page"),
  );
  if (past.length > 0) process.stdout.write(`  ${view}: wider than the window: ${past.join(", ")}\n`);
  return past.length;
}

/** Returns what finds the address of a thing that a list links to: that whose name has a word, or else the first. */
function linksOf(page: Page, origin: string) {
  return async (list: string, prefix: string, word = "") => {
    await page.goto(origin + list);
    const links = page.locator(`main a[href^="${prefix}0"]`);
    await links.first().waitFor();
    const named = links.filter({ hasText: word });
    const chosen = (await named.count()) > 0 ? named.first() : links.first();
    return (await chosen.getAttribute("href")) as string;
  };
}

/** Returns the addresses of the pages on which windows are opened. */
async function placesOf(page: Page, origin: string) {
  const linked = linksOf(page, origin);
  return {
    run: await linked("/agents?tab=waiting", "/agents/", "greet"),
    workflow: await linked("/workflows", "/workflows/", "count lines"),
    busyWorkflow: await linked("/workflows", "/workflows/", "watch the clock"),
  };
}

/** Returns the addresses of all pages, by names for them; of each kind of thing one that there is. */
async function addresses(page: Page, origin: string): Promise<Record<string, string>> {
  const linked = linksOf(page, origin);
  const run = await linked("/agents", "/agents/", "push");
  const workflow = await linked("/workflows", "/workflows/");
  const execution = await linked("/executions", "/executions/");
  const project = await linked("/projects", "/projects/", "hello");
  const approval = await linked("/approvals", "/approvals/");
  const partOf = (tab: string) => linked(`/organization?tab=${tab}`, `/organization?tab=${tab}&id=`);
  const tabs = (name: string, path: string, ...tabsOfIt: readonly string[]) =>
    Object.fromEntries(tabsOfIt.map((tab) => [`${name}-${tab}`, `${path}?tab=${tab}`]));
  return {
    home: "/",
    agents: "/agents",
    run,
    ...tabs("run", run, "changes", "network", "sharing"),
    workflows: "/workflows",
    "workflow-new": "/workflows/new",
    workflow,
    ...tabs("workflow", workflow, "definition", "triggers", "ledger", "sharing"),
    executions: "/executions",
    execution,
    projects: "/projects",
    project,
    ...tabs("project", project, "classes", "editors", "prebuilds", "settings", "sharing"),
    "project-archived": `${project}?archived=yes`,
    approvals: "/approvals",
    approval,
    runners: "/runners",
    ...tabs(
      "organization",
      "/organization",
      "members",
      "groups",
      "invites",
      "accounts",
      "policies",
      "security",
      "secrets",
    ),
    ...tabs("organization", "/organization", "agents", "audit", "events", "server"),
    ...tabs("organization", "/organization", "webhooks"),
    "organization-group": await partOf("groups"),
    "organization-account": await partOf("accounts"),
    "organization-webhook": await partOf("webhooks"),
    "organization-retention": "/organization?tab=policies",
    account: "/account",
    ...tabs("account", "/account", "tokens"),
  };
}
