/**
 * Measures runs of agents on one server: `npm run bench:agents`. Writes bench/AGENTS.md. With `--quick` it does less and
 * only prints; `--rounds N` replaces the three rounds. Linux only.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  DELIVERED,
  KEPT,
  measureAgents,
  type Sizes,
  STARTED,
  WARM_UP,
  WORK_DELIVERED,
} from "./agent-figures.ts";
import { type Bar, barTable, roundsOf } from "./bars.ts";
import earlier from "./data/before.json" with { type: "json" };
import { type Figures, table } from "./figures.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";
import { START_FLAGS } from "./start-flags.ts";

const FULL: Sizes = { idle: 500, busy: 50, messages: 25, idleMs: 12_000, kept: { before: 100, more: 400 } };
const QUICK: Sizes = { idle: 60, busy: 10, messages: 5, idleMs: 5_000, kept: { before: 40, more: 40 } };

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
  const figures = await measureAgents(sizes);
  rounds.push(figures);
  loads.push(loadOfLastMinute());
  process.stderr.write(`round ${round}: ${JSON.stringify(figures)}\n`);
}

const bar = (what: string, bound: Pick<Bar, "atLeast" | "atMost" | "aim">): Bar => ({
  what,
  before: (earlier.agents as Figures)[what],
  rounds: roundsOf(rounds, what),
  ...bound,
});
const bars = [
  bar(STARTED, { atLeast: 60, aim: 120 }),
  bar(DELIVERED, { atMost: 100 }),
  bar(WORK_DELIVERED, { atMost: 100 }),
  bar(KEPT, { atMost: 150 }),
];
const page = `# Runs of agents on one server

Made by \`npm run bench:agents${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}\` on ${began.toISOString().slice(0, 10)}; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Load of the machine before and after each round: ${loads.map((load) => load.toFixed(1)).join(", ")}

The server, one process of the built-in runner, the programs of all agents (bench/agent.sh, in bash) and the bench share
these processors. The server has the flags of \`npm start\`: ${START_FLAGS}. Each run has an empty environment, and
each round a new data folder.

${sizes.idle} runs wait for input. ${sizes.busy} more are busy: each receives one message per second, ${sizes.messages} in all, is watched by
one stream, and answers with the time at which its program read the message. Then each receives the same number of
messages again and answers each with seven blocks: a thought, a plan, a tool call in three states, the last with a diff,
usage, and text; two streams watch each run, one of them the folded view. The delivery time is from the call of
SendToAgentExecution, not from its response, until the program has read the message.

The memory of an idle run is the difference in the server's VmRSS between ${WARM_UP} runs and all idle runs. Most of it is
garbage and memory that a server takes once, independent of runs. The memory that the server retains per run is measured
on another server: RssAnon after a garbage collection with ${sizes.kept.before + sizes.kept.more} waiting runs, minus the same with ${sizes.kept.before}, divided by ${sizes.kept.more}.
It includes SQLite's page cache, which is limited to 16 MiB per connection.

## Targets

${barTable(bars).join("\n")}

## Results

The column "before" is from ${earlier.from}.

${table(rounds, earlier.agents).join("\n")}
`;
if (isQuick) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "AGENTS.md"), page);
