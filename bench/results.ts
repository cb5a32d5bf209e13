import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Growth } from "./growth/growth.ts";
import { growthBars, growthTables } from "./growth/growth-page.ts";
import type { Options } from "./options.ts";
import { caseTables, ratioTable } from "./page.ts";
import { RATIOS } from "./ratios.ts";
import type { Measures } from "./rounds.ts";

/** The machine and the results of a run. */
export interface Run {
  readonly options: Options;
  readonly began: Date;
  readonly tookMinutes: number;
  /** From machine.ts. */
  readonly machine: readonly string[];
  /** Average numbers of processes that ran or waited to run, before and after each part. */
  readonly loads: readonly number[];
  readonly measures: Measures;
  readonly growth: Growth | undefined;
  readonly cases: Parameters<typeof caseTables>[0];
}

const PACKAGES = [
  "autocannon",
  "fastify",
  "@connectrpc/connect-node",
  "kysely",
  "better-sqlite3",
  "@grpc/grpc-js",
  "pino",
];

/** Returns the page of a run. */
export function resultsPage(run: Run): string {
  const { options, began, tookMinutes, machine, loads, measures, growth, cases } = run;
  const command = `npm run bench${options.isQuick ? " -- --quick" : ""}`;
  return `# The server next to its peers

Made by \`${command}\` on ${began.toISOString().slice(0, 10)} in ${tookMinutes.toFixed(0)} minutes; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Packages: ${PACKAGES.map((name) => `${name} ${versionOf(name)}`).join(", ")}
- Load of the machine before the run and after its parts: ${loads.map((load) => load.toFixed(1)).join(", ")}

Each server runs in a separate process on its own copy of the same data. The load generator, autocannon, is another
process; it keeps a fixed number of connections busy, each with one request at a time. Each of the ${options.rounds} rounds measures
every server for ${options.seconds} seconds after a warm-up, in ${options.parts} parts that alternate with those of the other servers; the order
rotates. The latencies of a round are means of its parts. Processor time is that of all threads of the server, divided
by the number of its responses. Peers authenticate, validate, log and query the database as the server does; the comment
at the top of each file in bench/peers describes the peer and what it leaves out.

- ours and one-commit-each: started as by \`npm start\`, which sets Node's heap limits; the others use Node's defaults
- ceiling: node:http, prepared statements of better-sqlite3, and the stored JSON copied as text
- fastify: Fastify with schemas for Ajv and fast-json-stringify, and better-sqlite3
- connect-node: the stock adapter of connect-node, protovalidate, and Kysely
- grpc-js: @grpc/grpc-js with the .proto file loaded, and better-sqlite3; it is loaded by a client of grpc-js, with as
  many connections of HTTP/2
- one-commit-each: our server with a commit for every write

## Targets

A ratio of processor time is the peer's divided by ours; a ratio of requests per second is ours divided by the peer's.
Higher ratios are better. For a value with an upper bound ("within"), lower is better.${options.isQuick ? " A quick run has 100 thousand projects for the million." : ""}

${ratioTable(RATIOS, measures, growth ? growthBars(growth) : []).join("\n")}

## Cases

The data: 2,000 projects of about 900 bytes in the organization of the caller, and 2,000 more in 20 others.

${caseTables(cases, measures).join("\n")}
${growth ? `## As data grows\n\n${growthTables(growth).join("\n")}` : ""}
[TRIED.md](TRIED.md) lists the attempts to reach the targets and their effects.
`;
}

/** Returns the version of an installed package. */
export function versionOf(name: string): string {
  const manifest = join(import.meta.dirname, "../node_modules", name, "package.json");
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}
