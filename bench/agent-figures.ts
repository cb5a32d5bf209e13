import { setTimeout as delay } from "node:timers/promises";
import { AgentOutputView } from "#gen/service/v1/agent_pb.js";
import { type AgentSite, openAgentSite } from "./agent-site.ts";
import { type Deliveries, talk } from "./agent-talk.ts";
import { type Figures, percentile } from "./figures.ts";
import { allProcessorsMs, processorMs } from "./machine.ts";
import { anonymousKibAfterCollection, COLLECTABLE, residentKib } from "./server-memory.ts";

export interface Sizes {
  readonly idle: number;
  readonly busy: number;
  /** Messages to each busy run, one a second, in each of the two talks. */
  readonly messages: number;
  /** How long the idle runs are measured. */
  readonly idleMs: number;
  /** Number of runs before the memory of an idle run is first measured, and number of runs that are added then. */
  readonly kept: { readonly before: number; readonly more: number };
}

/** Number of runs before memory is first read, so that everything that runs share is loaded. */
export const WARM_UP = 20;

/** The names of the figures that have a bar. */
export const STARTED = "runs started a second, until they wait";
export const KEPT = "memory that the server keeps for an idle run, KiB";
export const DELIVERED = "from send to delivery, p99 ms";
const WITH_BLOCKS = "with blocks of every kind: ";
export const WORK_DELIVERED = WITH_BLOCKS + DELIVERED;

const ALL = AgentOutputView.UNSPECIFIED;
const FOLDED = AgentOutputView.FOLDED;

/** Measures one round. */
export async function measureAgents(sizes: Sizes): Promise<Figures> {
  return { ...(await siteFigures(sizes)), ...(await keptFigures(sizes)) };
}

async function siteFigures(sizes: Sizes): Promise<Figures> {
  const site = await openAgentSite(sizes.idle + sizes.busy);
  // On a machine with too much other work a queue fills up, which ends a round early.
  try {
    const idle = await idleFigures(site, sizes);
    const runs = await site.startRuns(sizes.busy);
    const { messages } = sizes;
    const words = await busyFigures(site, () => talk(site, runs, { text: "hello", messages, views: [ALL] }));
    const work = await busyFigures(site, () =>
      talk(site, runs, { text: "work", messages, views: [ALL, FOLDED] }),
    );
    const named = Object.entries(work).map(([name, value]) => [WITH_BLOCKS + name, value]);
    return { ...idle, ...words, ...Object.fromEntries(named), ...(await listFigures(site, runs)) };
  } finally {
    await site.close();
  }
}

async function idleFigures(site: AgentSite, sizes: Sizes): Promise<Figures> {
  await site.startRuns(WARM_UP);
  const first = memory(site);
  const starting = processors(site);
  await site.startRuns(sizes.idle - WARM_UP);
  const before = processors(site);
  const spentMs = (of: "server" | "runner" | "all") => (before[of] - starting[of]) / (sizes.idle - WARM_UP);
  await delay(sizes.idleMs);
  const after = processors(site);
  const last = memory(site);
  const grownKib = (of: keyof typeof last) => (last[of] - first[of]) / (sizes.idle - WARM_UP);
  return {
    [STARTED]: ((sizes.idle - WARM_UP) / (before.at - starting.at)) * 1000,
    "processor time of the server a start, ms": spentMs("server"),
    "processor time of the runner a start, ms": spentMs("runner"),
    "processor time of all programs a start, ms": spentMs("all"),
    "memory of the server an idle run, KiB": grownKib("server"),
    "memory of the runner an idle run, KiB": grownKib("runner"),
    "memory of the server with all that are idle, MiB": last.server / 1024,
    ...shares("with the idle runs", before, after),
  };
}

/** Measures on a separate server, since a garbage collection changes the other memory figures. */
async function keptFigures({ kept: { before, more } }: Sizes): Promise<Figures> {
  const site = await openAgentSite(before + more, "warn", COLLECTABLE);
  try {
    await site.startRuns(before);
    const first = await anonymousKibAfterCollection(site.server);
    await site.startRuns(more);
    return { [KEPT]: ((await anonymousKibAfterCollection(site.server)) - first) / more };
  } finally {
    await site.close();
  }
}

async function busyFigures(site: AgentSite, talking: () => Promise<Deliveries>): Promise<Figures> {
  const before = processors(site);
  const { sentMs, deliveryMs, answerMs, blocks } = await talking();
  const after = processors(site);
  const [words = [], folded] = answerMs.values();
  return {
    messages: deliveryMs.length,
    "blocks that were sent to watchers": blocks,
    ...percentiles("from send to its answer", sentMs),
    ...percentiles("from send to delivery", deliveryMs),
    ...percentiles("from send to the answer at a watcher", words),
    ...(folded && percentiles("from send to the answer at a watcher of the folded view", folded)),
    ...shares("with all runs", before, after),
  };
}

/** Measures the first page of each run's blocks, in both views. */
async function listFigures(site: AgentSite, runs: readonly string[]): Promise<Figures> {
  const timesOf = async (view: string) => {
    const times: number[] = [];
    for (const agentExecutionId of runs) {
      const began = performance.now();
      await site.call("AgentService/ListAgentOutputBlocks", {
        agentExecutionId,
        view,
        pagination: { pageSize: 100 },
      });
      times.push(performance.now() - began);
    }
    return percentile(times, 50);
  };
  return {
    "a page of 100 blocks, p50 ms": await timesOf("AGENT_OUTPUT_VIEW_UNSPECIFIED"),
    "a page of 100 folded blocks, p50 ms": await timesOf("AGENT_OUTPUT_VIEW_FOLDED"),
  };
}

function percentiles(what: string, times: readonly number[]): Figures {
  return { [`${what}, p50 ms`]: percentile(times, 50), [`${what}, p99 ms`]: percentile(times, 99) };
}

interface Processors {
  readonly at: number;
  readonly server: number;
  readonly runner: number;
  readonly all: number;
}

function processors({ server, runner }: AgentSite): Processors {
  return {
    at: performance.now(),
    server: processorMs(server.process.pid),
    runner: processorMs(runner.pid),
    all: allProcessorsMs(),
  };
}

function shares(when: string, before: Processors, after: Processors): Figures {
  const busy = (of: "server" | "runner" | "all") => (after[of] - before[of]) / (after.at - before.at);
  return {
    [`processors busy with the server, ${when}`]: busy("server"),
    [`processors busy with the runner, ${when}`]: busy("runner"),
    [`processors busy at all, ${when}`]: busy("all"),
  };
}

function memory({ server, runner }: AgentSite) {
  return { server: residentKib(server.process.pid), runner: residentKib(runner.pid) };
}
