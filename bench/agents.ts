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

Server, one process of the built-in runner, the programs of all agents (bench/agent.sh, in bash) and the bench share
these processors. The server has the flags of \`npm start\`: ${START_FLAGS}. Each run has an empty environment of its
own, and each round a new data folder.

${sizes.idle} runs wait for input and ${sizes.busy} more are busy: each of them gets a message a second, ${sizes.messages} in all, is watched by
a stream of its own, and answers with the moment at which its program read the message. Then each gets as many messages
that it answers with seven blocks: a thought, a plan, a tool call in three states, the last of them with a diff, usage,
and the words; two streams watch each, one of them the folded view. The time of a delivery is the one from the call of
SendToAgentExecution, not from its answer, to the moment at which the program read the message.

The memory of an idle run is what the process holds (VmRSS) more with all that are idle than with ${WARM_UP} runs. That is
mostly what a server takes once, whatever runs, and garbage. What it keeps for a run is measured on another server: its
memory after a collection of garbage (RssAnon) with ${sizes.kept.before + sizes.kept.more} runs that wait, less the same with ${sizes.kept.before}, for each of the ${sizes.kept.more}.
It has the pages of the database that SQLite keeps, which end at 16 MiB a connection.

## What was promised

${barTable(bars).join("\n")}

## The figures

Those from before are of ${earlier.from}.

${table(rounds, earlier.agents).join("\n")}
`;
if (isQuick) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "AGENTS.md"), page);
