import { statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { bareRepository } from "../test/harness/git-repository.ts";
import { temporaryFolder } from "../test/harness/server.ts";
import { type ExecutionTimes, openTimes } from "./action-times.ts";
import { type Figures, jain, percentile } from "./figures.ts";
import { openSite, type ProcessorTimes, type Site } from "./site.ts";
import { startIdleRunner, startRealRunner } from "./start-runner.ts";

/** The sizes of the workloads. Numbers of actions are per execution. */
export interface Sizes {
  readonly full: { readonly executions: number; readonly actions: number };
  readonly arriving: { readonly executions: number; readonly actions: number; readonly everyMs: number };
  readonly real: { readonly executions: number; readonly actions: number };
}

/** Maximum number of concurrent actions of an execution. */
export const MAX_PARALLEL = 5;

/** Number of concurrent callers of StartWorkflow. */
const STARTERS = 8;

const POLL_MS = 100;

/** Measures throughput and fairness when all executions are queued before the first runner begins. */
export async function fullQueue({ full }: Sizes): Promise<Figures> {
  const site = await openSite(startIdleRunner);
  const start = await workflow(site, full.actions);
  const startsBegan = performance.now();
  await startAll(Array.from({ length: full.executions }, () => start));
  const startsMs = performance.now() - startsBegan;
  const began = Date.now();
  const before = site.processors();
  site.begin();
  const { times, after } = await ended(site, full.executions);
  const bytes = statSync(join(site.server.dataDir, "chartroom.db")).size;
  await site.close();
  const finished = times.flatMap(({ actionsFinishedAt }) => actionsFinishedAt);
  const tookMs = Math.max(...finished) - began;
  const halfAt = percentile(finished, 50);
  const shares = times.map(({ actionsFinishedAt }) => actionsFinishedAt.filter((at) => at <= halfAt).length);
  const ends = times.map(({ actionsFinishedAt }) => (Math.max(...actionsFinishedAt) - began) / tookMs);
  const firsts = times.map(({ actionsStartedAt }) => (actionsStartedAt[0] ?? Number.NaN) - began);
  return {
    "actions a second": (finished.length / tookMs) * 1000,
    "executions started a second, before": (full.executions / startsMs) * 1000,
    "Jain's index of actions done, at half of all": jain(shares),
    "least actions done of an execution, at half of all": Math.min(...shares),
    "most actions done of an execution, at half of all": Math.max(...shares),
    "first execution at its end, % of the time": Math.min(...ends) * 100,
    "median execution at its end, % of the time": percentile(ends, 50) * 100,
    "first action of an execution after the runners began, p50 ms": percentile(firsts, 50),
    "first action of an execution after the runners began, p99 ms": percentile(firsts, 99),
    "database an action, KiB": bytes / 1024 / finished.length,
    ...processorFigures(before, after, finished.length, tookMs),
  };
}

/** Measures how soon executions begin that arrive at a fixed rate, whether or not earlier ones have ended. */
export async function arriving({ arriving: { executions, actions, everyMs } }: Sizes): Promise<Figures> {
  const site = await openSite(startIdleRunner);
  const start = await workflow(site, actions);
  site.begin();
  const before = site.processors();
  const began = performance.now();
  const starts: Promise<unknown>[] = [];
  while (starts.length < executions) {
    starts.push(start());
    await delay(Math.max(0, starts.length * everyMs - (performance.now() - began)));
  }
  await Promise.all(starts);
  const { times, after } = await ended(site, executions);
  const tookMs = performance.now() - began;
  await site.close();
  const firsts = times.map(
    ({ startedAt, actionsStartedAt }) => (actionsStartedAt[0] ?? Number.NaN) - startedAt,
  );
  const wholes = times.map(({ startedAt, actionsFinishedAt }) => Math.max(...actionsFinishedAt) - startedAt);
  return {
    "actions a second, asked for": (actions / everyMs) * 1000,
    "from start to first action, p50 ms": percentile(firsts, 50),
    "from start to first action, p99 ms": percentile(firsts, 99),
    "from start to end, p50 ms": percentile(wholes, 50),
    "from start to end, p99 ms": percentile(wholes, 99),
    ...processorFigures(before, after, executions * actions, tookMs),
  };
}

/** Measures the built-in runner: each action clones a small repository and runs one command. */
export async function realRunners({ real }: Sizes): Promise<Figures> {
  const site = await openSite(startRealRunner);
  const start = await workflow(site, real.actions, { repository: namesOfOneRepository() });
  const before = site.processors();
  const began = Date.now();
  await Promise.all(Array.from({ length: real.executions }, start));
  const { times, after } = await ended(site, real.executions);
  await site.close();
  const finished = times.flatMap(({ actionsFinishedAt }) => actionsFinishedAt);
  const tookMs = Math.max(...finished) - began;
  return {
    "actions a second": (finished.length / tookMs) * 1000,
    ...processorFigures(before, after, finished.length, tookMs),
  };
}

/** Starts executions, {@link STARTERS} at a time. */
export async function startAll(starts: readonly (() => Promise<unknown>)[]): Promise<void> {
  const left = [...starts];
  const starter = async () => {
    for (let start = left.shift(); start; start = left.shift()) await start();
  };
  await Promise.all(Array.from({ length: STARTERS }, starter));
}

/** Returns different addresses of one repository, since a repeated address gets only one action. */
function namesOfOneRepository(): (index: number) => string {
  const folder = temporaryFolder();
  const repository = bareRepository(folder, { "a.txt": "one\n" });
  return (index) => {
    const name = join(folder, `r${index}.git`);
    symlinkSync(repository.folder, name);
    return pathToFileURL(name).href;
  };
}

interface WorkflowOptions {
  readonly repository?: (index: number) => string;
  /** Token of the organization that owns it; of the first one by default. */
  readonly token?: string | undefined;
}

/** Creates a workflow of one command over a number of repositories; returns the function that starts it. */
export async function workflow(
  { call }: Site,
  actions: number,
  { repository = (index) => `https://git.example.org/team/r${index}.git`, token }: WorkflowOptions = {},
): Promise<() => Promise<unknown>> {
  const repoUrls = Array.from({ length: actions }, (_, index) => repository(index));
  const request = {
    name: "Bench",
    triggers: [{ manual: {}, context: { repositories: { repositoryUrls: { repoUrls } } } }],
    action: {
      limits: { maxParallel: Math.min(MAX_PARALLEL, actions), maxTotal: actions },
      steps: [{ task: { command: "true" } }],
    },
  };
  const { workflow: made } = await call("WorkflowService/CreateWorkflow", request, token);
  return () => call("WorkflowService/StartWorkflow", { workflowId: made.id }, token);
}

/** Waits until all executions have ended. */
async function ended(
  site: Site,
  executions: number,
): Promise<{ times: ExecutionTimes[]; after: ProcessorTimes }> {
  const records = openTimes(site.server.dataDir);
  while (records.openCount() > 0) await delay(POLL_MS);
  const after = site.processors();
  const times = records.read();
  const failed = records.failedCount();
  records.close();
  if (failed > 0 || times.length !== executions) {
    throw new Error(`${failed} actions failed; ${times.length} of ${executions} executions are there`);
  }
  return { times, after };
}

export function processorFigures(
  before: ProcessorTimes,
  after: ProcessorTimes,
  actions: number,
  tookMs: number,
): Figures {
  const spent = (of: keyof ProcessorTimes) => after[of] - before[of];
  return {
    "processor time of the server an action, ms": spent("server") / actions,
    "processor time of the runners an action, ms": spent("runners") / actions,
    "processors busy with the server": spent("server") / tookMs,
    "processors busy with other programs": spent("others") / tookMs,
  };
}
