/**
 * Measures what callers notice of the removal of old rows: `npm run bench:retention`, some ten minutes. Writes
 * bench/RETENTION.md; with `--rows 50000` it has fewer and only prints.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openData } from "../src/commands/open-data.ts";
import { readConfig } from "../src/config/config.ts";
import type { Retention } from "../src/domain/policy/retention.ts";
import { applyRetention } from "../src/jobs/retention/retention.ts";
import { createLog } from "../src/log.ts";
import { buildServer } from "../src/server.ts";
import { createOrganizationWithToken } from "../src/services/access/organization-creation.ts";
import type { Store } from "../src/store/store.ts";
import { dropAllData, nameDatabase } from "../test/harness/data-config.ts";
import { columnsOf, countOf, type RawData, withRawData } from "../test/harness/raw-data.ts";
import { percentile, shown } from "./figures.ts";
import { startAskers } from "./load/askers.ts";
import { startLoad } from "./load/load.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";
import { startCluster } from "./postgres/cluster.ts";

const ROWS = 1_000_000;
/** Actions of an execution, each with two portions of output. */
const ACTIONS = 20;
const OUTPUTS = 2;
/** Others create a project so often: about a quarter of one processor. */
const CREATE_EVERY_MS = 20;
const DAY_MS = 86_400_000;
/** Kept for a day; what is removed ended a month ago. */
const A_DAY = { days: 1, count: 0 };
const KEEP: Retention = { executions: A_DAY, agentExecutions: A_DAY, triggerEntries: A_DAY, events: A_DAY };

const { values: options } = parseArgs({ options: { rows: { type: "string", default: String(ROWS) } } });
const rows = Number(options.rows);

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const lines: string[] = [];
const load = startLoad();
const folder = mkdtempSync(join(tmpdir(), "chartroom-bench-"));
try {
  await measure("SQLite", join(folder, "sqlite"), "");
  loads.push(loadOfLastMinute());
  const cluster = await startCluster();
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

An organization has ${rows.toLocaleString("en")} rows that it keeps no longer: executions of ${ACTIONS} actions with their output, and as many events.
The job removes them, first without anybody else and then, with as many rows again, beside others: three callers ask,
each again 2 ms after its answer, and every ${CREATE_EVERY_MS} ms a project is created. Before that they ask without the job. A timer
in the askers' thread shows what the machine's other work adds. "A write of the job" is the time for which one of its
writes holds the group of a commit. Times in milliseconds.

| engine | when | what | times | p50 | p99 | longest |
|---|---|---|---:|---:|---:|---:|
${lines.join("\n")}
`;
if (rows === ROWS) writeFileSync(join(import.meta.dirname, "RETENTION.md"), page);
else process.stdout.write(page);

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
    await removeBeside("the job alone", async (work) => {
      await work;
    });
    await beside("no job", () => new Promise((resolve) => setTimeout(resolve, 20_000)));
    await removeBeside("both", async (work) => {
      await beside("both", () => work);
    });
    /** Fills the data, removes what it was filled with, and tells of the writes. */
    async function removeBeside(when: string, wait: (work: Promise<void>) => Promise<void>): Promise<void> {
      await withRawData(dataDir, (raw) => fill(raw, { organizationId, executionId, rows }));
      const holds: number[] = [];
      const started = performance.now();
      await wait(applyRetention(timed(store, holds), KEEP, Date.now()));
      const seconds = Math.round((performance.now() - started) / 1000);
      tell(engine, when, `a write of the job, ${shown(seconds)} s in all`, holds);
      const left = await withRawData(dataDir, (raw) => countOf(raw, "workflow_action"));
      if (left !== ACTIONS) throw new Error(`${left} actions are left`);
    }

    /** Asks and creates until something has ended, and tells how long that took. */
    async function beside(when: string, until: () => Promise<unknown>): Promise<void> {
      await askers.take();
      const creates = await createUntil(site, until());
      for (const [who, waits] of Object.entries(await askers.take())) tell(engine, when, who, waits);
      tell(engine, when, "CreateProject", creates);
    }
  } finally {
    await askers.stop();
    await server.close();
    await store.close();
  }
}

interface Site {
  readonly url: string;
  readonly token: string;
}

/** Creates projects at a pace until something has ended; the time of each from the moment at which it was due. */
async function createUntil(site: Site, until: Promise<unknown>): Promise<number[]> {
  const body = JSON.stringify({ name: "Created beside", initializer: { specs: [] } });
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

/** A store whose writes are timed from the moment at which they have the transaction. */
function timed(store: Store, holds: number[]): Store {
  const write: Store["write"] = (actor, operation, run, writeOptions) =>
    store.write(
      actor,
      operation,
      async (tx) => {
        const from = performance.now();
        try {
          return await run(tx);
        } finally {
          holds.push(performance.now() - from);
        }
      },
      writeOptions,
    );
  return Object.create(store, { write: { value: write } });
}

/** Makes an execution that has ended, as the API makes one. @returns its id */
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

/** What data is filled with. */
interface Filling {
  readonly organizationId: string;
  /** The execution of which the others are copies. */
  readonly executionId: string;
  readonly rows: number;
}

/** Returns twelve digits of a number, the end of an id. */
function digits(number: string): string {
  return `substr(cast(1000000000000 + ${number} as text), 2)`;
}

/** Copies an ended execution until there are so many rows, half of them events, all a month old. */
async function fill(raw: RawData, { organizationId, executionId, rows: wanted }: Filling): Promise<void> {
  const copies = Math.ceil(wanted / 2 / (1 + ACTIONS * (1 + OUTPUTS)));
  const at = Date.now() - 30 * DAY_MS;
  const numbers = (count: number) =>
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})`;
  const copyId = `substr('${executionId}', 1, 24) || ${digits("n.i")}`;
  const place = `(select count(*) from workflow_action as other where other.execution_id = a.execution_id and other.id <= a.id)`;
  const actionId = `substr(a.id, 1, 24) || ${digits(`n.i * 1000 + ${place}`)}`;
  await raw.beginLocked();
  await copyRows(raw, "workflow_execution", {
    from: `${numbers(copies)} select %s from workflow_execution as a, n where a.id = '${executionId}'`,
    values: {
      id: copyId,
      started_at: `${at}`,
      finished_at: `${at}`,
      body: `replace(a.body, '${executionId}', ${copyId})`,
    },
  });
  await copyRows(raw, "workflow_action", {
    from: `${numbers(copies)} select %s from workflow_action as a, n where a.execution_id = '${executionId}'`,
    values: {
      id: actionId,
      execution_id: copyId,
      finished_at: `${at}`,
      body: `replace(replace(a.body, '${executionId}', ${copyId}), a.id, ${actionId})`,
    },
  });
  const bytes = raw.isPostgres ? "convert_to(repeat('a line of output ', 15), 'UTF8')" : "zeroblob(240)";
  await raw.run(
    `insert into step_log (action_id, attempt, step_index, start, data)
      ${numbers(OUTPUTS)} select a.id, 1, 0, n.i * 240, ${bytes} from workflow_action as a, n
      where a.execution_id <> '${executionId}'`,
  );
  const [last] = await raw.rows<{ sequence: number }>(
    "select sequence from organization where id = ?",
    organizationId,
  );
  const events = Math.ceil(wanted / 2);
  await raw.run(
    `insert into event (organization_id, sequence, at, kind, resource_type, resource_id)
      ${numbers(events)} select '${organizationId}', ${last?.sequence} + n.i, ${at}, 'updated', 'project', '${executionId}' from n`,
  );
  await raw.run(`update organization set sequence = sequence + ${events} where id = '${organizationId}'`);
  await raw.run("commit");
  process.stderr.write(`filled: ${copies} executions, ${events} events\n`);
}

/** Inserts rows of a table that are those of a query, but for these values. */
async function copyRows(
  raw: RawData,
  table: string,
  { from, values }: { readonly from: string; readonly values: Readonly<Record<string, string>> },
): Promise<void> {
  const columns = await columnsOf(raw, table);
  const chosen = columns.map((column) => values[column] ?? `a.${column}`);
  await raw.run(`insert into ${table} (${columns.join(", ")}) ${from.replace("%s", chosen.join(", "))}`);
}

function tell(engine: string, when: string, what: string, times: readonly number[]): void {
  const figures = [percentile(times, 50), percentile(times, 99), Math.max(...times)].map(shown);
  lines.push(`| ${[engine, when, what, times.length.toLocaleString("en"), ...figures].join(" | ")} |`);
  process.stderr.write(`${lines.at(-1)}\n`);
}
