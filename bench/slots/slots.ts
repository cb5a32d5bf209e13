/**
 * Measures agents that have released their slots: `npm run bench:slots`. Writes bench/SLOTS.md. With `--quick` it does
 * less and only prints; `--rounds N` replaces the single round. Linux only.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { AgentOutputView } from "#gen/service/v1/agent_pb.js";
import { type AgentSite, openAgentSite } from "../agent-site.ts";
import { type Deliveries, talk } from "../agent-talk.ts";
import { barTable, roundsOf } from "../bars.ts";
import { type Figures, percentile, table } from "../figures.ts";
import { loadOfLastMinute, machineLines } from "../machine.ts";

interface Sizes {
  /** Number of waiting runs. */
  readonly runs: number;
  /** Number of runs that get a message each, one after another. */
  readonly messages: number;
  /** Number of runs that all get a message within a second. */
  readonly burst: number;
}

const SLOTS = 8;
/** Interval of the messages that are sent one after another, in milliseconds. */
const EVERY_MS = 250;
const FULL: Sizes = { runs: 500, messages: 200, burst: 50 };
const QUICK: Sizes = { runs: 40, messages: 16, burst: 10 };

const { values: options } = parseArgs({
  options: { quick: { type: "boolean" }, rounds: { type: "string" } },
});
const isQuick = options.quick === true;
const sizes = isQuick ? QUICK : FULL;

const DELIVERED = "from send to delivery, p50 ms";

/** Measures one round. */
async function measure({ runs: count, messages, burst }: Sizes): Promise<Figures> {
  const site = await openAgentSite(SLOTS, "warn", {}, ["resumable"]);
  try {
    const began = performance.now();
    const runs = await site.startRuns(count);
    const startedMs = performance.now() - began;
    const without = await untilGivenBack(site, runs, count - SLOTS);
    // The last runs still have their slots.
    const text = "hello";
    const views = [AgentOutputView.UNSPECIFIED];
    const said = { text, messages: 1, views };
    const single = await talk(site, runs.slice(0, messages), { ...said, spreadMs: messages * EVERY_MS });
    const many = await talk(site, runs.slice(messages, messages + burst), said);
    return {
      "runs started a second, until they wait": (count / startedMs) * 1_000,
      "runs without a slot before the messages": without,
      ...figuresOf("", single),
      ...figuresOf(`${burst} messages within a second: `, many),
    };
  } finally {
    await site.close();
  }
}

function figuresOf(what: string, { sentMs, deliveryMs, answerMs }: Deliveries): Figures {
  const [answers = []] = answerMs.values();
  const times = {
    "from send to its answer": sentMs,
    "from send to delivery": deliveryMs,
    "from send to the answer at a watcher": answers,
  };
  return Object.fromEntries(
    Object.entries(times).flatMap(([name, values]) => [
      [`${what}${name}, p50 ms`, percentile(values, 50)],
      [`${what}${name}, p99 ms`, percentile(values, 99)],
    ]),
  );
}

/** Waits until a number of runs have released their slots; returns how many have. */
async function untilGivenBack(
  { call }: AgentSite,
  runs: readonly string[],
  atLeast: number,
): Promise<number> {
  for (;;) {
    let found = 0;
    for (let at = 0; at < runs.length; at += 100) {
      const { agentExecutions } = await call("AgentService/ListAgentExecutions", {
        filter: { agentExecutionIds: runs.slice(at, at + 100) },
        pagination: { pageSize: 100 },
      });
      for (const { status } of agentExecutions) if (status.slot === "SLOT_GIVEN_BACK") found++;
    }
    if (found >= atLeast) return found;
    await delay(500);
  }
}

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const rounds: Figures[] = [];
for (let round = 1; round <= Number(options.rounds ?? 1); round++) {
  rounds.push(await measure(sizes));
  loads.push(loadOfLastMinute());
  process.stderr.write(`round ${round}: ${JSON.stringify(rounds.at(-1))}\n`);
}
const page = `# Agents that have released their slots

Made by \`npm run bench:slots${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}\` on ${began.toISOString().slice(0, 10)}; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Load of the machine before and after each round: ${loads.map((load) => load.toFixed(1)).join(", ")}

The server, one process of the built-in runner, the programs of all agents (bench/agent.sh, in bash) and the bench share
these processors. Each run has an empty environment, and each round a new data folder.

${sizes.runs} runs wait for input on a runner with ${SLOTS} slots for agents, so all but ${SLOTS} of them have released their slots and have no
program. ${sizes.messages} of those receive one message each, one every ${EVERY_MS} ms: another run releases its slot, and a program starts
and reads the message. Then ${sizes.burst} others receive one message each within one second. The delivery time is from the call of
SendToAgentExecution, not from its response, until the program has read the message. It includes the time that a program
takes to start or to end.

## Targets

${barTable([{ what: DELIVERED, rounds: roundsOf(rounds, DELIVERED), atMost: 2_000 }]).join("\n")}

## Results

${table(rounds).join("\n")}
`;
if (isQuick) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "../SLOTS.md"), page);
