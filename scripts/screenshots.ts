/**
 * Takes pictures of every page of the console, to be looked at: in both themes, and at 380 px.
 *
 *   npm start -- --sample-data                               prints a link to sign in
 *   node scripts/screenshots.ts LINK docs/console/pages      FOLDER/PAGE/{light,dark,narrow}.jpg
 *   node scripts/screenshots.ts LINK FOLDER run              only pages whose names begin with "run"
 *
 * What the sample data has nothing of, such as webhooks, is made first. Fails where a page is wider than its window.
 * Needs Chromium; TEST_CHROMIUM names another than Debian's.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import { complete } from "./screenshots/sample.ts";

const VIEWS = [
  { name: "light", colorScheme: "light", width: 1280 },
  { name: "dark", colorScheme: "dark", width: 1280 },
  { name: "narrow", colorScheme: "light", width: 380 },
] as const;
const HEIGHT = 800;
/** Small, and still legible. */
const JPEG = { type: "jpeg", quality: 55 } as const;

/** The headings to which pages are scrolled, by the names of the pages. */
const HEADINGS: Readonly<Record<string, string>> = { "organization-retention": "What retention removes now" };

const [link, folder, begin = ""] = process.argv.slice(2);
if (!link || !folder) throw new Error("usage: node scripts/screenshots.ts LINK FOLDER [BEGINNING OF NAMES]");

const browser = await chromium.launch({
  executablePath: process.env.TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP *.localhost 127.0.0.1"],
});
try {
  const page = await browser.newPage({ reducedMotion: "reduce" });
  let wide = 0;
  if ("sign-in".startsWith(begin)) wide += await take(page, link, join(folder, "sign-in"));
  await page.goto(link);
  await page.getByRole("button", { name: /^Sign in as/ }).click();
  await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
  const { origin } = new URL(page.url());
  await complete(page);
  const pages = Object.entries(await addresses(page, origin)).filter(([name]) => name.startsWith(begin));
  for (const [index, [name, path]] of pages.entries()) {
    process.stdout.write(`${index + 1}/${pages.length} ${name}\n`);
    wide += await take(page, origin + path, join(folder, name), HEADINGS[name]);
  }
  if (wide > 0) process.exitCode = 1;
} finally {
  await browser.close();
}

/**
 * Takes a page in each view; with a heading, scrolled to it.
 *
 * @returns the number of views that are wider than the window
 */
async function take(page: Page, address: string, to: string, heading?: string): Promise<number> {
  mkdirSync(to, { recursive: true });
  await page.goto(address);
  await page.locator("h1").waitFor();
  // Names that are asked for one by one are dots until they come.
  await page.waitForFunction(
    () =>
      document.querySelector(".skeleton") === null &&
      [...document.querySelectorAll("td")].every(
        ({ textContent }) => !/^(…|\.\.\.)$/.test(textContent ?? ""),
      ),
  );
  let wide = 0;
  for (const { name, colorScheme, width } of VIEWS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: HEIGHT });
    // Two frames: what follows the size of the window is drawn in the second.
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    if (heading) await page.getByRole("heading", { name: heading }).evaluate((each) => each.scrollIntoView());
    await page.screenshot({ path: join(to, `${name}.jpg`), ...JPEG });
    const past = await page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return scrollWidth - clientWidth;
    });
    if (past > 0) {
      process.stdout.write(`  ${name}: ${past} px wider than the window\n`);
      wide++;
    }
  }
  return wide;
}

/** Returns the addresses of all pages, by names for them; of each kind of thing one that there is. */
async function addresses(page: Page, origin: string): Promise<Record<string, string>> {
  /** Returns the address of a thing that a list links to: that whose name has a word, or else the first. */
  const linked = async (list: string, prefix: string, word = "") => {
    await page.goto(origin + list);
    const links = page.locator(`main a[href^="${prefix}0"]`);
    await links.first().waitFor();
    const named = links.filter({ hasText: word });
    const chosen = (await named.count()) > 0 ? named.first() : links.first();
    return (await chosen.getAttribute("href")) as string;
  };
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
    ...tabs("project", project, "classes", "editors", "prebuilds", "sharing"),
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
