/**
 * Measures the overhead of metrics per call in a tight loop: `npm run bench:metrics`, a few seconds. Fails if the median
 * overhead of the rounds exceeds the bar.
 */
import { CallMeasures, type MeasuredCall } from "../src/metrics/call-measures.ts";
import { percentile } from "./figures.ts";
import { machineLines } from "./machine.ts";

/** Maximum overhead of the metrics of a call. */
const BAR_NS = 1_000;
const CALLS = 2_000_000;
const ROUNDS = 9;

/** Typical calls of a server: some operations with some codes, and durations from 0.1 ms to 4 s. */
const calls: readonly MeasuredCall[] = Array.from({ length: 256 }, (_, index) => ({
  operation: `service.v1.ProjectService/Operation${index % 24}`,
  ...(index % 10 === 0 ? { code: "not_found", status: 404 } : { code: "ok", status: 200 }),
  durationMs: 0.1 * 1.042 ** index,
}));

/** Returns the nanoseconds that one round took for each call. */
function measure(measures: CallMeasures): number {
  const began = process.hrtime.bigint();
  for (let index = 0; index < CALLS; index++) {
    measures.begin();
    measures.end(calls[index % calls.length] as MeasuredCall, "POST");
  }
  return Number(process.hrtime.bigint() - began) / CALLS;
}

const measures = new CallMeasures();
measure(measures);
const rounds = Array.from({ length: ROUNDS }, () => measure(measures)).sort((a, b) => a - b);
const median = percentile(rounds, 50);
process.stdout.write(
  `${machineLines().join("\n")}\nA call's measurement takes ${Math.round(median)} ns (${Math.round(rounds[0] ?? 0)} to ` +
    `${Math.round(rounds.at(-1) ?? 0)} in ${ROUNDS} rounds of ${CALLS.toLocaleString("en")} calls); ` +
    `at most ${BAR_NS.toLocaleString("en")} are allowed.\n`,
);
const recorded = measures
  .metrics()[0]
  ?.values.reduce((sum, [, value]) => sum + (typeof value === "number" ? 0 : value.count), 0);
if (recorded !== CALLS * (ROUNDS + 1)) throw new Error(`${recorded} calls were recorded`);
if (median > BAR_NS) process.exitCode = 1;
