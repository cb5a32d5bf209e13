/**
 * Measures how long callers wait when the disk is slow: `npm run bench:disk`,
 * two minutes. Writes bench/SLOW-DISK.md. With `--quick` it does less and only
 * prints; it also only prints with `--ms 0,20`, which replaces the three
 * delays. Needs Linux and a C compiler.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { slowDisk } from "../test/harness/slow-disk.ts";
import { openAgentSite } from "./agent-site.ts";
import { CASES } from "./cases.ts";
import { percentile, shown } from "./figures.ts";
import { startAskers, type Waits } from "./load/askers.ts";
import { startLoad } from "./load/load.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";

const WRITERS = 32;
/** The contract's maximum size of an image, and number of images in an input. */
const IMAGE_BYTES = 4 * 1024 * 1024;
const IMAGES = 10;
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const DELAYS = "0,20,200";

const { values: options } = parseArgs({
  options: { quick: { type: "boolean" }, ms: { type: "string", default: DELAYS } },
});
const isQuick = options.quick === true;
const seconds = isQuick ? 5 : 20;
const sends = isQuick ? 2 : 5;

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const rows: string[] = [];
const load = startLoad();
try {
  for (const delayMs of options.ms.split(",").map(Number)) {
    await measure(delayMs);
    loads.push(loadOfLastMinute());
  }
} finally {
  load.stop();
}

const page = `# Waits on a slow disk

Made by \`npm run bench:disk\` on ${began.toISOString().slice(0, 10)}; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Load of the machine before and after each delay: ${loads.map((each) => each.toFixed(1)).join(", ")}

Each fsync takes longer than usual by the given delay (test/harness/slow-disk.c). Three callers send a request, wait for
the response and send the next one 2 ms later; the delay of a timer in their thread shows what other work on the machine
adds. Meanwhile ${WRITERS} others create projects for ${seconds} seconds; then ${sends} calls of SendToAgentExecution follow one another, with ${IMAGES}
images of 4 MiB each. Waits in milliseconds.

| delay of an fsync | meanwhile | who waits | responses | p50 | p99 | longest |
|---|---|---|---:|---:|---:|---:|
${rows.join("\n")}
`;
if (isQuick || options.ms !== DELAYS) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "SLOW-DISK.md"), page);

async function measure(delayMs: number): Promise<void> {
  const disk = slowDisk(delayMs);
  if (!disk) throw new Error("there is no C compiler, or no loader that takes what it makes");
  const site = await openAgentSite(1, "warn", disk.env);
  const { url, token } = site.server;
  const wanted = { name: "Asked for", initializer: { specs: [] } };
  const { project } = await site.call("ProjectService/CreateProject", wanted);
  const askers = startAskers({ url, token, projectId: project.id });

  const requests = CASES.find(({ name }) => name === "create32")?.requests as () => [];
  const task = { form: "json", url, token, connections: WRITERS, requests: requests() } as const;
  await load.run({ ...task, seconds: 1 });
  await askers.take();
  const { answered, failed, p50Ms, p99Ms, longestMs } = await load.run({ ...task, seconds });
  if (failed > 0) throw new Error(`${failed} creates failed`);
  const whileWriting = [delayMs, `${WRITERS} writers`];
  tell(whileWriting, await askers.take());
  row(whileWriting, "a writer", answered, [p50Ms, p99Ms, longestMs]);

  const data = Buffer.concat([PNG, Buffer.alloc(IMAGE_BYTES - PNG.length)]).toString("base64");
  const inputs = Array.from({ length: IMAGES }, () => ({ image: { data, mimeType: "image/png" } }));
  // This run takes the only slot of the runner, so the others keep their input.
  await site.startRuns(1);
  const runs: string[] = [];
  while (runs.length < sends) runs.push((await site.call("AgentService/StartAgent", {})).agentExecutionId);
  await askers.take();
  const took: number[] = [];
  for (const agentExecutionId of runs) {
    const sent = performance.now();
    await site.call("AgentService/SendToAgentExecution", { agentExecutionId, userInput: { inputs } });
    took.push(performance.now() - sent);
  }
  const whileSending = [delayMs, "ten images"];
  tell(whileSending, { ...(await askers.take()), "who sends them": took });
  await askers.stop();
  await site.close();
}

function tell(when: readonly (number | string)[], waits: Waits): void {
  for (const [who, each] of Object.entries(waits)) {
    row(when, who, each.length, [percentile(each, 50), percentile(each, 99), Math.max(...each)]);
  }
}

function row(
  when: readonly (number | string)[],
  who: string,
  answers: number,
  waits: readonly number[],
): void {
  rows.push(`| ${[...when, who, answers, ...waits.map(shown)].join(" | ")} |`);
  process.stderr.write(`${rows.at(-1)}\n`);
}
