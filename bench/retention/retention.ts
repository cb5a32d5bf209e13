/**
 * Measures the effect of the removal of old rows on callers: `npm run bench:retention`, less than ten minutes. Prints a
 * page and writes it to bench/RETENTION.md. With `--rows 20000` it uses fewer rows and only prints.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openData } from "../../src/commands/open-data.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Retention } from "../../src/domain/policy/retention.ts";
import { applyRetention } from "../../src/jobs/retention/retention.ts";
import { createLog } from "../../src/log.ts";
import { buildServer } from "../../src/server.ts";
import { createOrganizationWithToken } from "../../src/services/access/organization-creation.ts";
import type { Store } from "../../src/store/store.ts";
import { dropAllData, nameDatabase } from "../../test/harness/data-config.ts";
import { countOf, tampering, withRawData } from "../../test/harness/raw-data.ts";
import { percentile, shown } from "../figures.ts";
import { NOBODY, startAskers } from "../load/askers.ts";
import { startLoad } from "../load/load.ts";
import { loadOfLastMinute, machineLines } from "../machine.ts";
import { startCluster } from "../postgres/cluster.ts";
import { ACTIONS, fillWithOldRows, OUTPUTS } from "./old-rows.ts";

const ROWS = 1_000_000;
const DAY_MS = 86_400_000;
/** The share of the rows that the job removes without other load. */
const ALONE = 1 / 10;
/** Maximum time that a caller may wait, and that a write of the job may hold a commit group. */
const STALL_MS = 100;
const HOLD_MS = 20;
/** Interval at which other callers create a project. This uses about a quarter of a processor. */
const CREATE_EVERY_MS = 20;
/** Rows are retained for a day; the old rows ended a month ago. */
const A_DAY = { days: 1, count: 0 };
const KEEP: Retention = { executions: A_DAY, agentExecutions: A_DAY, triggerEntries: A_DAY, events: A_DAY };

const { values: options } = parseArgs({ options: { rows: { type: "string", default: String(ROWS) } } });
const rows = Number(options.rows);

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const lines: string[] = [];
const findings: string[] = [];
const load = startLoad();
const folder = mkdtempSync(join(tmpdir(), "chartroom-bench-"));
try {
  await measure("SQLite", join(folder, "sqlite"), "");
  loads.push(loadOfLastMinute());
  // In a folder on disk, so that its commits wait for the disk.
  const cluster = await startCluster(mkdtempSync(join(tmpdir(), "chartroom-postgres-")));
  try {
    await cluster.run("postgres", "create database retention");
    const url = cluster.urlOf("retention");
    const dataDir = join(folder, "postgres");
    nameDatabase(dataDir, url);
    await measure("PostgreSQL", dataDir, url);
    loads.push(loadOfLastMinute());
  } finally {
    await cluster.stop();
  }
} finally {
  load.stop();
  await dropAllData();
  rmSync(folder, { recursive: true });
}

const page = `# The removal of old rows

Made by \`npm run bench:retention\` on ${began.toISOString().slice(0, 10)}; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Load of the machine before and after each engine: ${loads.map((each) => each.toFixed(1)).join(", ")}

An organization has ${rows.toLocaleString("en")} rows past their retention: executions of ${ACTIONS} actions with ${OUTPUTS} portions of output each, and as
many events. First the job removes a tenth as many rows alone. Then callers work without the job, for ten times as long
as that took. Then the job removes the rows while they work: three callers send a request, wait for the response and send
the next one 2 ms later, and every ${CREATE_EVERY_MS} ms a project is created. A timer in the callers' thread shows the delay that other
work on the machine adds; no caller can wait less. "A write of the job" is the time for which one of its writes holds
the group of a commit. The remaining time until the commit ends, with the writes of others in the group and their
records, is on a separate line. The targets: no caller waits longer than ${STALL_MS} ms, and no write holds its group longer
than ${HOLD_MS} ms.

${findings.join("\n")}

Times in milliseconds:

| engine | when | what | times | p50 | p99 | longest |
|---|---|---|---:|---:|---:|---:|
${lines.join("\n")}
`;
process.stdout.write(page);
if (rows === ROWS) writeFileSync(join(import.meta.dirname, "..", "RETENTION.md"), page);

async function measure(engine: string, dataDir: string, databaseUrl: string): Promise<void> {
  const config = readConfig({ dataDir, databaseUrl, port: "0", metricsAddress: "none" }, {});
  const { store, keys } = await openData(config, { presence: "server" });
  const log = createLog("error");
  const founded = await createOrganizationWithToken(store, keys, {
    operation: "npm run bench:retention",
    organizationName: "Main",
    accountName: "Administrator",
    email: "main@example.org",
  });
  const server = buildServer(config, { store, keys, log, providers: [], machineIssuers: [], now: Date.now });
  const site = { url: await server.listen(), token: founded.token };
  const { organizationId } = founded;
  const executionId = await endedExecution(site);
  const wanted = { name: "Asked for", initializer: { specs: [] } };
  const { project } = await call(site, "ProjectService/CreateProject", wanted);
  const askers = startAskers({ ...site, projectId: project.id });
  try {
    const alone = await remove("the job alone", Math.ceil(rows * ALONE), async (work) => {
      await work;
    });
    // About as long as with the job, so that rare delays, once in thousands of creates, occur here as well.
    const undisturbedMs = (alone.seconds / ALONE) * 1_000;
    await measureWaits("no job", () => new Promise((resolve) => setTimeout(resolve, undisturbedMs)));
    let longest: Longest = { caller: 0, timer: 0 };
    const { seconds, holds } = await remove("both", rows, async (work) => {
      longest = await measureWaits("both", () => work);
    });
    const longer = holds.filter(({ ms }) => ms > HOLD_MS);
    const own = longer.filter(({ ms, waitedMs }) => ms - waitedMs > HOLD_MS);
    findings.push(
      `- ${engine}: ${rows.toLocaleString("en")} rows went in ${shown(seconds)} s. The longest that a caller waited meanwhile: ` +
        `${shown(longest.caller)} ms (the timer was late by up to ${shown(longest.timer)} ms); the longest that a write held its group: ` +
        `${shown(largest(holds.map(({ ms }) => ms)))} ms, ${longer.length} of ${holds.length.toLocaleString("en")} longer than ${HOLD_MS} ms` +
        `${longer.length > 0 ? `, ${own.length} of them without the time in which its thread waited for a processor` : ""}.`,
    );
    /** Adds old rows, removes them, and reports the times of the job's writes. */
    async function remove(when: string, count: number, wait: (work: Promise<void>) => Promise<void>) {
      const fillFrom = performance.now();
      // Without the triggers, which count each row separately.
      await tampering(dataDir, (raw) => fillWithOldRows(raw, { organizationId, executionId, rows: count }));
      process.stderr.write(`filled in ${secondsSince(fillFrom)} s\n`);
      const [holds, commits]: [Hold[], number[]] = [[], []];
      const removeFrom = performance.now();
      await wait(applyRetention(timed(store, holds, commits), KEEP, Date.now()));
      const seconds = secondsSince(removeFrom);
      tell(
        engine,
        when,
        `a write of the job, ${count.toLocaleString("en")} rows in ${shown(seconds)} s`,
        holds.map(({ ms }) => ms),
      );
      tell(
        engine,
        when,
        "of it, its thread waited for a processor",
        holds.map(({ waitedMs }) => waitedMs),
      );
      tell(engine, when, "from its end to that of the commit, which others may share", commits);
      const left = await withRawData(dataDir, (raw) => countOf(raw, "workflow_action"));
      if (left !== ACTIONS) throw new Error(`${left} actions are left`);
      const old = await withRawData(dataDir, (raw) =>
        raw.rows("select sequence from event where at < ? limit 1", Date.now() - DAY_MS),
      );
      if (old.length > 0) throw new Error("old events are left");
      return { seconds, holds };
    }

    /** Sends requests until a promise settles, and reports and returns the waits. */
    async function measureWaits(when: string, until: () => Promise<unknown>): Promise<Longest> {
      await askers.take();
      const creates = await createUntil(site, until());
      const waits = { ...(await askers.take()), CreateProject: creates };
      for (const [who, times] of Object.entries(waits)) tell(engine, when, who, times);
      const [timers, callers] = [true, false].map((isTimer) =>
        Object.entries(waits).flatMap(([who, times]) =>
          (who === NOBODY) === isTimer ? [largest(times)] : [],
        ),
      );
      return { caller: largest(callers ?? []), timer: largest(timers ?? []) };
    }
  } finally {
    await askers.stop();
    await server.close();
    await store.close();
  }
}

/** The longest waits of a phase, in milliseconds. */
interface Longest {
  readonly caller: number;
  readonly timer: number;
}

interface Site {
  readonly url: string;
  readonly token: string;
}

/** Creates projects at a fixed rate until a promise settles. Returns the time of each, measured from when it was due. */
async function createUntil(site: Site, until: Promise<unknown>): Promise<number[]> {
  const body = JSON.stringify({ name: "Created meanwhile", initializer: { specs: [] } });
  const requests = [{ operation: "ProjectService/CreateProject", body }];
  const task = { form: "json", ...site, connections: 16, requests, everyMs: CREATE_EVERY_MS } as const;
  let isOver = false;
  const over = until.finally(() => {
    isOver = true;
  });
  const waits: number[] = [];
  while (!isOver) {
    const result = await load.run({ ...task, seconds: 2 });
    if (result.failed > 0) throw new Error(`${result.failed} creates failed`);
    waits.push(...(result.timesMs ?? []));
  }
  await over;
  return waits;
}

/** How long a write held a commit group, and for how long of that its thread was runnable but waited for a processor. */
interface Hold {
  readonly ms: number;
  readonly waitedMs: number;
}

/** Returns how long this thread has waited for a processor since it started; 0 on other systems than Linux. */
function waitedForProcessorMs(): number {
  if (process.platform !== "linux") return 0;
  return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[1]) / 1e6;
}

/** Returns a store that records how long each write holds its transaction, and how long the commit takes afterwards. */
function timed(store: Store, holds: Hold[], commits: number[]): Store {
  const write: Store["write"] = async (actor, operation, run, writeOptions) => {
    let ended = 0;
    const result = await store.write(
      actor,
      operation,
      async (tx) => {
        const waited = waitedForProcessorMs();
        const from = performance.now();
        try {
          return await run(tx);
        } finally {
          ended = performance.now();
          holds.push({ ms: ended - from, waitedMs: waitedForProcessorMs() - waited });
        }
      },
      writeOptions,
    );
    commits.push(performance.now() - ended);
    return result;
  };
  return Object.create(store, { write: { value: write } });
}

/** Creates an ended execution through the API. @returns its id */
async function endedExecution(site: Site): Promise<string> {
  const { exchangeToken } = await call(site, "RunnerService/CreateRunner", { name: "Idle" });
  const environmentClass = { displayName: "Idle", description: "Does nothing" };
  const registering = { ...site, token: exchangeToken };
  const { environmentClassIds } = await call(registering, "WorkService/Register", {
    version: "bench",
    environmentClass,
  });
  const repoUrls = Array.from(
    { length: ACTIONS },
    (_, index) => `https://git.example.org/team/r${index}.git`,
  );
  const repositories = { repositoryUrls: { repoUrls }, environmentClassId: environmentClassIds[0] };
  const { workflow } = await call(site, "WorkflowService/CreateWorkflow", {
    name: "Old",
    triggers: [{ manual: {}, context: { repositories } }],
    action: { limits: { maxParallel: ACTIONS, maxTotal: ACTIONS }, steps: [{ task: { command: "true" } }] },
  });
  const { workflowExecution } = await call(site, "WorkflowService/StartWorkflow", {
    workflowId: workflow.id,
  });
  const named = { workflowExecutionId: workflowExecution.id };
  await call(site, "WorkflowService/CancelWorkflowExecution", named);
  return workflowExecution.id;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of many operations, read once each
async function call({ url, token }: Site, operation: string, body: object): Promise<any> {
  const service = operation.startsWith("WorkService") ? "runner.v1" : "service.v1";
  const answer = await fetch(`${url}/api/${service}.${operation}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${operation} answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}

function tell(engine: string, when: string, what: string, times: readonly number[]): void {
  const figures = [percentile(times, 50), percentile(times, 99), largest(times)].map(shown);
  lines.push(`| ${[engine, when, what, times.length.toLocaleString("en"), ...figures].join(" | ")} |`);
  process.stderr.write(`${lines.at(-1)}\n`);
}

/** Returns the maximum. Math.max(...times) would have too many arguments. */
function largest(times: readonly number[]): number {
  return times.reduce((most, time) => Math.max(most, time), 0);
}

function secondsSince(moment: number): number {
  return Math.round((performance.now() - moment) / 100) / 10;
}
