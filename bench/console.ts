/**
 * Measures how responsive the console is on long pages in a real browser: `npm run bench:console`, about two minutes.
 * Writes bench/CONSOLE.md. With `--quick` it opens each page once and only prints. Needs Chromium: Debian's, or the one
 * that TEST_CHROMIUM names.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { chromium, type Page } from "playwright-core";
import { runCommand } from "../test/harness/server.ts";
import { openAgentSite } from "./agent-site.ts";
import { percentile, shown } from "./figures.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";

/** Number of messages to the run; each is answered with seven blocks. */
const MESSAGES = 286;
/** Maximum number of queued messages. */
const AT_ONCE = 20;
const ACTIONS = 1_000;
/** Maximum number of rows that a page may draw. */
const MAX_ROWS = 200;
const ROUNDS = 5;

const { values: options } = parseArgs({ options: { quick: { type: "boolean" } } });
const rounds = options.quick ? 1 : ROUNDS;

/** An interaction with a page, and what to wait for. */
interface Way {
  readonly name: string;
  readonly rows: string;
  go(page: Page): Promise<unknown>;
}

const began = new Date();
const machine = machineLines();
const before = loadOfLastMinute();
const site = await openAgentSite(1);
const browser = await chromium.launch({
  executablePath: process.env.TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP *.localhost 127.0.0.1"],
});
const lines: string[] = [];
try {
  const [run = ""] = await site.startRuns(1);
  await talkWith(run);
  const page = await signedIn();
  const { origin } = new URL(page.url());
  await measure(page, [
    {
      name: `a run with ${MESSAGES * 7} blocks is opened`,
      rows: "[role=log] > *",
      async go() {
        await page.goto(`${origin}/agents/${run}`);
        await page.getByRole("button", { name: /^Show \d+ earlier$/ }).waitFor();
      },
    },
    {
      name: "and 40 letters are typed for it",
      rows: "[role=log] > *",
      go: () =>
        page.getByLabel("Message to the agent").pressSequentially("a message of forty letters to the agent "),
    },
  ]);
  // Without a runner, the actions keep waiting.
  site.runner.kill("SIGTERM");
  await once(site.runner, "exit");
  const execution = await startExecution();
  await measure(page, [
    {
      name: `an execution of ${ACTIONS.toLocaleString("en")} actions is opened`,
      rows: ".cell",
      async go() {
        await page.goto(`${origin}/executions/${execution}`);
        await page.getByRole("heading", { name: "Pending 1,000", level: 2 }).waitFor();
      },
    },
    {
      name: "and its board is scrolled to its end",
      rows: ".cell",
      async go() {
        const board = page.locator(".board");
        for (let part = 1; part <= 20; part++) {
          await board.evaluate((each, share) => each.scrollTo({ top: each.scrollHeight * share }), part / 20);
          await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
        }
      },
    },
  ]);
} finally {
  await browser.close();
  await site.close();
}

const text = `# Long pages of the console

Made by \`npm run bench:console\` on ${began.toISOString().slice(0, 10)}; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Browser: Chromium ${browser.version()}, without a GPU
- Load of the machine before and after: ${before.toFixed(1)}, ${loadOfLastMinute().toFixed(1)}

Server, runner and browser share these processors. A long task takes more than 50 ms, as the browser reports it; the page
does not respond meanwhile. Each measurement is made ${rounds} times. At most ${MAX_ROWS} rows may be drawn at a time.

| what | median, ms | long tasks each time | the longest, ms | rows drawn |
|---|---:|---:|---:|---:|
${lines.join("\n")}
`;
if (options.quick) process.stdout.write(text);
else writeFileSync(join(import.meta.dirname, "CONSOLE.md"), text);

/** Sends all messages and waits until the agent has received them. */
async function talkWith(agentExecutionId: string): Promise<void> {
  for (let sent = 0; sent < MESSAGES; sent += AT_ONCE) {
    for (let each = 0; each < Math.min(AT_ONCE, MESSAGES - sent); each++) {
      const userInput = { inputs: [{ text: { content: "work" } }] };
      await site.call("AgentService/SendToAgentExecution", { agentExecutionId, userInput });
    }
    for (;;) {
      const { inputs } = await site.call("AgentService/ListAgentInputs", { agentExecutionId });
      if (inputs.length === 0) break;
      await delay(50);
    }
  }
}

/** Starts an execution whose actions all wait. @returns its id */
async function startExecution(): Promise<string> {
  const projectIds: string[] = [];
  for (let hundred = 0; hundred < ACTIONS / 100; hundred++) {
    const projects = Array.from({ length: 100 }, (_, at) => ({
      initializer: {
        specs: [{ git: { remoteUri: `https://git.example.org/team/of-${hundred}-${at}.git` } }],
      },
    }));
    const { createdProjects } = await site.call("ProjectService/CreateProjects", { projects });
    projectIds.push(...createdProjects.map(({ id }: { id: string }) => id));
  }
  const { workflow } = await site.call("WorkflowService/CreateWorkflow", {
    name: "A thousand",
    action: { limits: { maxParallel: 1, maxTotal: ACTIONS }, steps: [{ task: { command: "true" } }] },
  });
  const { workflowExecution } = await site.call("WorkflowService/StartWorkflow", {
    workflowId: workflow.id,
    contextOverride: { projects: { projectIds } },
  });
  return workflowExecution.id;
}

/** Signs in with a link and returns a page that records its long tasks. */
async function signedIn(): Promise<Page> {
  const { dataDir, url } = site.server;
  const { stdout } = await runCommand(["member", "sign-in", "admin@localhost", "--data-dir", dataDir]);
  const link = /\/sign-in#(\S+)/.exec(stdout)?.[1];
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(() => {
    const kept: number[] = [];
    Object.assign(globalThis, { longTasks: kept });
    const keep = (entries: PerformanceObserverEntryList) =>
      kept.push(...entries.getEntries().map(({ duration }) => duration));
    new PerformanceObserver(keep).observe({ type: "longtask", buffered: true });
  });
  await page.goto(`${url}/sign-in#${link}`);
  await page.getByRole("button", { name: /^Sign in as/ }).click();
  await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
  return page;
}

/** Returns the durations of the long tasks since the last call, in milliseconds, and clears them. */
function takeTasks(page: Page): Promise<number[]> {
  return page.evaluate(() => (globalThis as unknown as { longTasks: number[] }).longTasks.splice(0));
}

/** Performs each interaction several times, and records its time and its long tasks. */
async function measure(page: Page, ways: readonly Way[]): Promise<void> {
  for (const way of ways) {
    const times: number[] = [];
    const tasks: number[] = [];
    let most = 0;
    for (let round = 0; round < rounds; round++) {
      // Let the previous page finish its remaining work first.
      await delay(500);
      await takeTasks(page);
      const from = performance.now();
      await way.go(page);
      times.push(performance.now() - from);
      await delay(500);
      tasks.push(...(await takeTasks(page)));
      most = Math.max(most, await page.locator(way.rows).count());
    }
    if (most > MAX_ROWS) throw new Error(`${most} rows are drawn where ${way.name}`);
    const longest = tasks.length === 0 ? 0 : Math.max(...tasks);
    const cells = [percentile(times, 50), longest].map(shown);
    lines.push(`| ${[way.name, cells[0], shown(tasks.length / rounds), cells[1], most].join(" | ")} |`);
    process.stderr.write(`${lines.at(-1)}\n`);
  }
}
