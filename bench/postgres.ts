/**
 * Compares the server with its peers on PostgreSQL, and with itself as data
 * grows: `npm run bench:postgres`, about 11 minutes. It starts the release that
 * npm installs, with commits forced to disk. Writes bench/POSTGRES.md, even with
 * other `--rounds` and `--seconds`, which the page names. With `--quick` it does
 * less and only prints. The options are those of bench.ts. The cases are those of
 * bench/postgres/cases.ts, `two-servers` and `growth`, which includes `searches`:
 * `--case searches` and `--case create20x` only measure the bars of searches and
 * of creates.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stopAll } from "../test/harness/server.ts";
import { startLoad } from "./load/load.ts";
import { loadOfLastMinute, machineLines } from "./machine.ts";
import { isPart, readOptions } from "./options.ts";
import { POSTGRES_CASES, POSTGRES_RATIOS } from "./postgres/cases.ts";
import { startCluster } from "./postgres/cluster.ts";
import { measurePostgresGrowth, type PostgresGrowth } from "./postgres/growth.ts";
import { postgresBars, postgresPage } from "./postgres/results.ts";
import { seedDatabase } from "./postgres/seed-database.ts";
import { databaseSite } from "./postgres/site.ts";
import { measureTwoServers, type TwoServers } from "./postgres/two-servers.ts";
import { median, ratioRounds } from "./ratios.ts";
import { type Measures, measureGroup } from "./rounds.ts";

const options = readOptions(process.argv.slice(2));
const isAsked = (name: string) => options.cases.length === 0 || options.cases.includes(name);
/** A quick run has only the cases that the ratios need. */
const cases = POSTGRES_CASES.filter(
  ({ name }) =>
    isAsked(name) &&
    (!options.isQuick || options.cases.length > 0 || POSTGRES_RATIOS.some((each) => each.case === name)),
);

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const folder = mkdtempSync(join(tmpdir(), "chartroom-bench-"));
const load = startLoad();
const cluster = await startCluster();
const measures: Measures = new Map();
const held: number[] = [];
let two: TwoServers | undefined;
let growth: PostgresGrowth | undefined;
let release = "";
try {
  const { rows } = await cluster.run("postgres", "show server_version");
  release = rows[0]?.server_version;
  const data = await seedDatabase(cluster, "seeded", join(folder, "seeded"), {
    projects: 2_000,
    others: { organizations: 20, projects: 100 },
  });
  const site = databaseSite(cluster, data, held);
  for (const group of ["reads", "writes"] as const) {
    const inGroup = cases.filter((each) => each.group === group);
    if (inGroup.length > 0) await measureGroup(inGroup, data, load, options, measures, site);
    loads.push(loadOfLastMinute());
  }
  if (isAsked("two-servers")) two = await measureTwoServers(cluster, data, load, options);
  const onlySearches = options.cases.includes("searches") && !options.cases.includes("growth");
  if (isAsked("growth") || onlySearches) {
    const { isQuick } = options;
    growth = await measurePostgresGrowth(cluster, folder, load, { isQuick, onlySearches }, held);
  }
  loads.push(loadOfLastMinute());
} finally {
  load.stop();
  await stopAll();
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}

if (options.json !== undefined) {
  const rounds = [
    ...POSTGRES_RATIOS.map((each) => [each.name, ratioRounds(each, measures)] as const),
    ...postgresBars({ growth, held }).map((each) => [each.name || each.what, each.rounds] as const),
  ].filter(([, values]) => values.length > 0);
  const ratios = Object.fromEntries(rounds.map(([name, values]) => [name, median(values)]));
  writeFileSync(options.json, `${JSON.stringify({ ratios }, undefined, 2)}\n`);
}
const page = postgresPage({
  options,
  began,
  tookMinutes: (Date.now() - began.getTime()) / 60_000,
  machine,
  release,
  loads,
  measures,
  two,
  growth,
  held,
});
if (options.isQuick || isPart(options)) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "POSTGRES.md"), page);
