/**
 * Measures how the service gives work out: `npm run bench:workflows`. Writes
 * bench/WORKFLOWS.md; with `--quick` it does less, takes under 100 seconds and
 * only prints; `--rounds N` in place of three.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Figures, table } from "./figures.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";
import { IDLE_SLOTS, REAL_SLOTS } from "./start-runner.ts";
import { arriving, fullQueue, MAX_PARALLEL, realRunners, type Sizes } from "./workloads.ts";

const FULL: Sizes = {
  full: { executions: 1_000, actions: 20 },
  arriving: { executions: 150, actions: 20, everyMs: 800 },
  real: { executions: 10, actions: 20 },
};
const QUICK: Sizes = {
  full: { executions: 20, actions: 20 },
  arriving: { executions: 10, actions: 20, everyMs: 800 },
  real: { executions: 2, actions: 8 },
};

const { values: options } = parseArgs({
  options: { quick: { type: "boolean" }, rounds: { type: "string" } },
});
const isQuick = options.quick === true;
const sizes = isQuick ? QUICK : FULL;
const roundCount = Number(options.rounds ?? (isQuick ? 2 : 3));
const workloads = { fullQueue, arriving, realRunners };
const rounds: Record<keyof typeof workloads, Figures[]> = { fullQueue: [], arriving: [], realRunners: [] };

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
for (let round = 1; round <= roundCount; round++) {
  // In turn, so that what else the machine does meets all of them alike.
  for (const name of Object.keys(workloads) as (keyof typeof workloads)[]) {
    const figures = await workloads[name](sizes);
    rounds[name].push(figures);
    process.stderr.write(`round ${round}, ${name}: ${JSON.stringify(figures)}\n`);
  }
  loads.push(loadOfLastMinute());
}

const { full, arriving: steady, real } = sizes;
const page = `# How fast work is given out

Made by \`npm run bench:workflows${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}\` on ${began.toISOString().slice(0, 10)}; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Load of the machine before and after each round: ${loads.map((load) => load.toFixed(1)).join(", ")}

Server, four runner processes and the bench share these processors, so that the figures are those of all of them
together; the server alone is measured by its processor time. The rows of other programs say how much of the machine was
taken by what has nothing to do with the bench. Each workload runs ${roundCount} times, in turn with the others, on a new data
folder each time.

## All at once

${full.executions.toLocaleString("en")} executions of ${full.actions} actions, at most ${MAX_PARALLEL} of each at the same time, all of them started before the first runner begins. The runners
carry nothing out (bench/idle-runner.ts): four processes with ${IDLE_SLOTS} slots each, which report and finish as the one that is built
in does.

${table(rounds.fullQueue).join("\n")}

## A steady pace

${steady.executions} executions of ${steady.actions} actions, one every ${steady.everyMs} ms, whether those before have ended or not. The same runners.

${table(rounds.arriving).join("\n")}

## Runners that work

${real.executions} executions of ${real.actions} actions on four processes of the runner that is built in, ${REAL_SLOTS} slots each. Each action clones a small
repository of this machine, runs \`true\` and removes its workspace.

${table(rounds.realRunners).join("\n")}
`;
if (isQuick) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "WORKFLOWS.md"), page);
