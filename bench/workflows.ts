/**
 * Measures how the service assigns work, compared with plain queues: `npm run bench:workflows`. Writes
 * bench/WORKFLOWS.md. With `--quick` it does less, takes under three minutes and only prints. `--rounds N` replaces the
 * three rounds. `--only oneOrganization` runs only that workload, or several in a comma-separated list, and prints the
 * figures. If the machine lacks something that the queues need, it names that and only prints.
 */
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { type Bar, barTable, roundsOf } from "./bars.ts";
import before from "./data/before.json" with { type: "json" };
import { type Figures, table } from "./figures.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";
import { type BenchCluster, SETTINGS, startCluster } from "./postgres/cluster.ts";
import { actionsOnPostgres, type PostgresSizes } from "./postgres/queued-actions.ts";
import { bullmq, graphileWorker, missingForQueues, queueVersions } from "./queues/queues.ts";
import { IDLE_SLOTS, REAL_SLOTS } from "./start-runner.ts";
import { arriving, fullQueue, MAX_PARALLEL, realRunners, type Sizes } from "./workloads.ts";

const FULL = {
  full: { executions: 500, actions: 20 },
  arriving: { executions: 75, actions: 20, everyMs: 800 },
  real: { executions: 10, actions: 20 },
  postgres: { executions: 100, actions: 20 },
  jobs: 5_000,
};
const QUICK: typeof FULL = {
  full: { executions: 20, actions: 20 },
  arriving: { executions: 10, actions: 20, everyMs: 800 },
  real: { executions: 2, actions: 8 },
  postgres: { executions: 20, actions: 5 },
  jobs: 500,
};
const ORGANIZATIONS = 20;

const { values: options } = parseArgs({
  options: { quick: { type: "boolean" }, rounds: { type: "string" }, only: { type: "string" } },
});
const isQuick = options.quick === true;
const sizes: Sizes & { readonly postgres: PostgresSizes; readonly jobs: number } = isQuick ? QUICK : FULL;
const only = options.only?.split(",");
const roundCount = Number(options.rounds ?? (isQuick ? 1 : 3));
const missing = [...missingForQueues(), ...(existsSync("/usr/bin/bwrap") ? [] : ["bubblewrap"])];
for (const each of missing) process.stderr.write(`missing: ${each}\n`);

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const cluster = await startCluster();
const workloads = workloadsOn(cluster);
const rounds: Record<keyof typeof workloads, Figures[]> = {
  allAtOnce: [],
  steady: [],
  cloning: [],
  oneOrganization: [],
  organizations: [],
  twoServers: [],
  sandboxes: [],
  graphileWorker: [],
  bullmq: [],
};
try {
  for (let round = 1; round <= roundCount; round++) {
    // In turn, so that other load on the machine affects all of them alike.
    for (const name of Object.keys(workloads) as (keyof typeof workloads)[]) {
      const workload = workloads[name];
      if (!workload || (only && !only.includes(name))) continue;
      const figures = await workload(round);
      rounds[name].push(figures);
      process.stderr.write(`round ${round}, ${name}: ${JSON.stringify(figures)}\n`);
    }
    loads.push(loadOfLastMinute());
  }
} finally {
  await cluster.stop();
}
if (only) {
  for (const name of Object.keys(workloads).filter((each) =>
    only.includes(each),
  ) as (keyof typeof workloads)[]) {
    process.stdout.write(`${name}\n\n${table(rounds[name]).join("\n")}\n\n`);
  }
} else writePage();

function writePage(): void {
  const page = pageOf();
  if (isQuick || missing.length > 0) {
    process.stdout.write(page);
    for (const each of missing) process.stderr.write(`the page was not written, for lack of ${each}\n`);
  } else writeFileSync(join(import.meta.dirname, "WORKFLOWS.md"), page);
}

/** Returns the workloads in the order in which they run. Leaves out a queue if the machine lacks what it needs. */
function workloadsOn(on: BenchCluster) {
  const onPostgres =
    (organizations: number, servers = 1) =>
    (round: number) =>
      actionsOnPostgres(
        on,
        `actions_${organizations}_${servers}_${round}`,
        { organizations, servers },
        sizes.postgres,
      );
  const isWhole = missing.length === 0;
  return {
    allAtOnce: (_: number) => fullQueue(sizes),
    steady: (_: number) => arriving(sizes),
    cloning: (_: number) => realRunners(sizes),
    oneOrganization: onPostgres(1),
    organizations: onPostgres(ORGANIZATIONS),
    twoServers: onPostgres(ORGANIZATIONS, 2),
    sandboxes: isWhole ? (_: number) => sandboxedCommands() : undefined,
    graphileWorker: isWhole ? (round: number) => graphileWorker(on, `jobs_${round}`, sizes.jobs) : undefined,
    bullmq: isWhole ? (_: number) => bullmq(sizes.jobs) : undefined,
  };
}

/** Returns the overhead of a sandbox for a command. */
async function sandboxedCommands(): Promise<Figures> {
  const args = [join(import.meta.dirname, "isolation.ts"), "--json", ...(isQuick ? ["--rounds", "20"] : [])];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

function bars(): Bar[] {
  const { allAtOnce, steady, cloning } = rounds;
  const ours = roundsOf(rounds.oneOrganization, "actions a second");
  const theirs = roundsOf(rounds.graphileWorker, "jobs a second");
  const was = (of: "allAtOnce" | "steady" | "cloning", name: string) => ({
    rounds: roundsOf({ allAtOnce, steady, cloning }[of], name),
    before: (before[of] as Figures)[name],
  });
  return [
    {
      what: "server, an action, all at once, ms",
      ...was("allAtOnce", "processor time of the server an action, ms"),
      atMost: 1.6,
      aim: 1,
    },
    { what: "actions a second", ...was("allAtOnce", "actions a second"), atLeast: 450, aim: 1_000 },
    {
      what: "runner, an action that carries nothing out, ms",
      ...was("allAtOnce", "processor time of the runners an action, ms"),
      atMost: 1,
      aim: 0.5,
    },
    { what: "database an action, KiB", ...was("allAtOnce", "database an action, KiB"), atMost: 9, aim: 6 },
    {
      what: "executions of 20 actions started a second",
      ...was("allAtOnce", "executions started a second, before"),
      atLeast: 400,
      aim: 800,
    },
    {
      what: "start to first action, steady, p99 ms",
      ...was("steady", "from start to first action, p99 ms"),
      atMost: 30,
      aim: 15,
    },
    {
      what: "start to end of 20 actions, steady, p50 ms",
      ...was("steady", "from start to end, p50 ms"),
      atMost: 120,
      aim: 60,
    },
    { what: "actions a second that clone", ...was("cloning", "actions a second"), atLeast: 30, aim: 40 },
    {
      what: "fairness (Jain) at half of all",
      ...was("allAtOnce", "Jain's index of actions done, at half of all"),
      atLeast: 0.99,
      aim: 1,
    },
    {
      what: "PostgreSQL, one organization, actions a second",
      rounds: ours,
      atLeast: 150,
      aim: 300,
    },
    {
      what: `PostgreSQL, ${ORGANIZATIONS} organizations, actions a second`,
      rounds: roundsOf(rounds.organizations, "actions a second"),
      atLeast: 150,
      aim: 300,
    },
    {
      what: "what a sandbox costs a command, ms",
      rounds: roundsOf(rounds.sandboxes, "what the sandbox costs, ms"),
      atMost: 30,
    },
    ...(theirs.length > 0
      ? [
          {
            what: "PostgreSQL, one organization, of the jobs of graphile-worker",
            rounds: ours.map((value, index) => value / (theirs[index] ?? Number.NaN)),
            atLeast: 0.3,
          },
        ]
      : []),
  ];
}

function pageOf(): string {
  const { full, arriving: steady, real, postgres, jobs } = sizes;
  const tookMinutes = (Date.now() - began.getTime()) / 60_000;
  const command = `npm run bench:workflows${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}`;
  return `# How fast work is assigned

Made by \`${command}\` on ${began.toISOString().slice(0, 10)} in ${tookMinutes.toFixed(0)} minutes; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Queues: ${missing.length > 0 ? "not measured" : queueVersions()}
- Load of the machine before and after each round: ${loads.map((load) => load.toFixed(1)).join(", ")}

The server, four runner processes, the bench and, for PostgreSQL, the database share these processors, so rates are those
of all of them together; processor time is given for the server alone. The rows about other programs show how much of
the machine unrelated processes used. Each workload runs ${roundCount} times, in turn with the others, on new data each time. The
column "before" is from ${before.from}.

## Targets

${barTable(bars()).join("\n")}

## All at once

${full.executions.toLocaleString("en")} executions of ${full.actions} actions, at most ${MAX_PARALLEL} of each at the same time, all started before the first runner begins. The runners
execute nothing (bench/idle-runner.ts): four processes with ${IDLE_SLOTS} slots each, which report and finish as the built-in runner
does. The database is SQLite, as in the next two sections.

${table(rounds.allAtOnce, before.allAtOnce).join("\n")}

## A steady pace

${steady.executions} executions of ${steady.actions} actions, one every ${steady.everyMs} ms, whether or not earlier ones have ended. The same runners.

${table(rounds.steady, before.steady).join("\n")}

## Runners that execute actions

${real.executions} executions of ${real.actions} actions on four processes of the built-in runner, ${REAL_SLOTS} slots each. Each action clones a small
repository of this machine, runs \`true\` and removes its workspace.

${table(rounds.cloning, before.cloning).join("\n")}

## On PostgreSQL

${postgres.executions} executions of ${postgres.actions} actions, all at once, on the same runners. The database runs with
\`${SETTINGS.join("`, `")}\`.

### One organization

${table(rounds.oneOrganization).join("\n")}

### ${ORGANIZATIONS} organizations

The executions and the slots of the runners are divided among them.

${table(rounds.organizations).join("\n")}

### ${ORGANIZATIONS} organizations and two servers

Two of the runner processes call each server.

${table(rounds.twoServers).join("\n")}

## What a sandbox costs a command

\`sh -c true\` by the runner, with and without a sandbox of bubblewrap, one after the other (bench/isolation.ts).

${missing.length > 0 ? "Not measured." : table(rounds.sandboxes).join("\n")}

## Dedicated job queues

${jobs.toLocaleString("en")} jobs wait before the first begins. Each is locked, writes two durable rows of progress, and is finished; ${4 * IDLE_SLOTS}
run at the same time. The comment at the top of each file in bench/queues describes the queue and what it leaves out.

### graphile-worker, on the same PostgreSQL

${missing.length > 0 ? "Not measured." : table(rounds.graphileWorker).join("\n")}

### BullMQ, on Redis with \`appendonly yes\` and \`appendfsync always\`

${missing.length > 0 ? "Not measured." : table(rounds.bullmq).join("\n")}
`;
}
