/**
 * Measures runs of agents on one server: `npm run bench:agents`. Writes
 * bench/AGENTS.md; with `--quick` it does less and only prints; `--rounds N` in place of three. Linux only.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type AgentSite, openAgentSite } from "./agent-site.ts";
import { type Deliveries, talk } from "./agent-talk.ts";
import { type Bar, barTable, roundsOf } from "./bars.ts";
import earlier from "./data/before.json" with { type: "json" };
import { type Figures, percentile, table } from "./figures.ts";
import { allProcessorsMs, loadOfLastMinute, machineLines, processorMs } from "./machine.ts";

interface Sizes {
  readonly idle: number;
  readonly busy: number;
  /** Messages to each busy run, one a second. */
  readonly messages: number;
  /** How long the idle runs are looked at. */
  readonly idleMs: number;
}

const FULL: Sizes = { idle: 500, busy: 50, messages: 60, idleMs: 30_000 };
const QUICK: Sizes = { idle: 60, busy: 10, messages: 10, idleMs: 5_000 };

/** Runs that are there before memory is first read: what all of them share has been loaded then. */
const WARM_UP = 20;

const STARTED = "runs started a second, until they wait";

const { values: options } = parseArgs({
  options: { quick: { type: "boolean" }, rounds: { type: "string" } },
});
const isQuick = options.quick === true;
const sizes = isQuick ? QUICK : FULL;
const roundCount = Number(options.rounds ?? (isQuick ? 1 : 3));

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const rounds: Figures[] = [];
for (let round = 1; round <= roundCount; round++) {
  const figures = await measure();
  rounds.push(figures);
  loads.push(loadOfLastMinute());
  process.stderr.write(`round ${round}: ${JSON.stringify(figures)}\n`);
}

const bars: Bar[] = [
  {
    what: STARTED,
    before: (earlier.agents as Figures)[STARTED],
    rounds: roundsOf(rounds, STARTED),
    atLeast: 60,
    aim: 120,
  },
];
const page = `# Runs of agents on one server

Made by \`npm run bench:agents${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}\` on ${began.toISOString().slice(0, 10)}; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Load of the machine before and after each round: ${loads.map((load) => load.toFixed(1)).join(", ")}

Server, one process of the built-in runner, the programs of all agents (bench/agent.sh, in bash) and the bench share
these processors. Each run has an empty environment of its own, and each round a new data folder.

${sizes.idle} runs wait for input and ${sizes.busy} more are busy: each of them gets a message a second, ${sizes.messages} in all, is watched by
a stream of its own, and answers with the moment at which its program read the message. The time of a delivery is the one
from the call of SendToAgentExecution to that moment. Memory is what the process holds (VmRSS): the growth from ${WARM_UP} runs
to all that are idle, for each of them.

## What was promised

${barTable(bars).join("\n")}

## The figures

Those from before are of ${earlier.from}.

${table(rounds, earlier.agents).join("\n")}
`;
if (isQuick) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "AGENTS.md"), page);

async function measure(): Promise<Figures> {
  const site = await openAgentSite(sizes.idle + sizes.busy);
  // A machine with too much other work ends a round early: a queue runs full then.
  try {
    const idle = await idleFigures(site);
    const runs = await site.startRuns(sizes.busy);
    const before = processors(site);
    const deliveries = await talk(site, runs, sizes.messages);
    const after = processors(site);
    return { ...idle, ...busyFigures(deliveries), ...shares("with all runs", before, after) };
  } finally {
    await site.close();
  }
}

async function idleFigures(site: AgentSite): Promise<Figures> {
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

function busyFigures({ deliveryMs, answerMs }: Deliveries): Figures {
  return {
    messages: deliveryMs.length,
    "from send to delivery, p50 ms": percentile(deliveryMs, 50),
    "from send to delivery, p99 ms": percentile(deliveryMs, 99),
    "from send to the answer at a watcher, p50 ms": percentile(answerMs, 50),
    "from send to the answer at a watcher, p99 ms": percentile(answerMs, 99),
  };
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
  return { server: heldKib(server.process.pid), runner: heldKib(runner.pid) };
}

function heldKib(processId: number | undefined): number {
  const status = readFileSync(`/proc/${processId}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
}
