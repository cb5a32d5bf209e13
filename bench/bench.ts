/**
 * Compares the server with its peers, and with itself as data grows:
 * `npm run bench`, about 20 minutes. Writes bench/RESULTS.md. With `--quick` it
 * does less, takes under 100 seconds and only prints. `--json FILE` also writes
 * the ratios. `--case get,list25,growth`, `--only ours,ceiling`, `--rounds` and
 * `--seconds` select what is measured, and `--profiles FOLDER` stores CPU
 * profiles; with these options it only prints, too. Linux only.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stopAll } from "../test/harness/server.ts";
import { CASES } from "./cases.ts";
import { seed } from "./data/seed.ts";
import { type Growth, measureGrowth } from "./growth/growth.ts";
import { growthBars } from "./growth/growth-page.ts";
import { startLoad } from "./load/load.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";
import { isSelection, readOptions } from "./options.ts";
import { measureOwn, OWN_CASES } from "./own-operations.ts";
import { median, RATIOS, ratioRounds } from "./ratios.ts";
import { resultsPage } from "./results.ts";
import { type Measures, measureGroup } from "./rounds.ts";

const options = readOptions(process.argv.slice(2));
/** A quick run has the cases that the ratios need, and the mix, which is closest to real use. */
const usual = options.isQuick ? [...RATIOS.map((each) => each.case), "mix"] : CASES.map(({ name }) => name);
const chosen = options.cases.length > 0 ? options.cases : usual;
const cases = CASES.filter(({ name }) => chosen.includes(name));
const isGrowing = options.cases.length === 0 || options.cases.includes("growth");

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const folder = mkdtempSync(join(tmpdir(), "chartroom-bench-"));
const load = startLoad();
const measures: Measures = new Map();
let growth: Growth | undefined;
try {
  const data = await seed(join(folder, "data"), {
    projects: 2_000,
    others: { organizations: 20, projects: 100 },
  });
  for (const group of ["reads", "writes"] as const) {
    const inGroup = cases.filter((each) => each.group === group);
    if (inGroup.length > 0) await measureGroup(inGroup, data, load, options, measures);
    loads.push(loadOfLastMinute());
  }
  await measureOwn(load, options, measures);
  if (isGrowing) growth = await measureGrowth(folder, load, options.isQuick);
  loads.push(loadOfLastMinute());
} finally {
  load.stop();
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}

if (options.json !== undefined) {
  const rounds = [
    ...RATIOS.map((each) => [each.name, ratioRounds(each, measures)] as const),
    ...(growth ? growthBars(growth) : []).map((each) => [each.name, each.rounds] as const),
  ].filter(([name, values]) => name !== "" && values.length > 0);
  const ratios = Object.fromEntries(rounds.map(([name, values]) => [name, median(values)]));
  writeFileSync(options.json, `${JSON.stringify({ ratios }, undefined, 2)}\n`);
}
const page = resultsPage({
  options,
  began,
  tookMinutes: (Date.now() - began.getTime()) / 60_000,
  machine,
  loads,
  measures,
  growth,
  cases: [...cases, ...OWN_CASES],
});
if (options.isQuick || isSelection(options)) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "RESULTS.md"), page);
