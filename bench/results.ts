import { existsSync, readFileSync } from "node:fs";
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

/** A handwritten page about attempts to reach the aims that had little or no effect. */
const TRIED = join(import.meta.dirname, "TRIED.md");

/** Returns the page of a run. */
export function resultsPage(run: Run): string {
  const { options, began, tookMinutes, machine, loads, measures, growth, cases } = run;
  const command = `npm run bench${options.isQuick ? " -- --quick" : ""}`;
  return `# The server next to its peers

Made by \`${command}\` on ${began.toISOString().slice(0, 10)} in ${tookMinutes.toFixed(0)} minutes; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Packages: ${PACKAGES.map((name) => `${name} ${versionOf(name)}`).join(", ")}
- Load of the machine before the run and after its parts: ${loads.map((load) => load.toFixed(1)).join(", ")}

Every server is a process of its own on a copy of the same data, and so is the load: autocannon, which keeps a number of
connections busy, each with one request at a time. Servers are asked in turn, in ${options.rounds} rounds; in a
round each is asked for ${options.seconds} seconds after a warm-up, in ${options.parts} parts between those of the others, and another one begins each
time. Latencies of a round are means of those parts. Processor time is that of all threads of the server,
divided by the requests that it answered. Peers authenticate, validate, log and ask the database as the server does; what
each of them is and leaves out is said at the head of its file in bench/peers.

- ours, and the kind of it below: as \`npm start\` starts it, which tells Node how much memory to take; Node chooses
  for the others
- ceiling: node:http, prepared statements of better-sqlite3, and the stored JSON copied as text
- fastify: Fastify with schemas for Ajv and fast-json-stringify, and better-sqlite3
- connect-node: the stock adapter of connect-node, protovalidate, and Kysely
- grpc-js: @grpc/grpc-js with the .proto file loaded, and better-sqlite3; it is loaded by a client of grpc-js, with as
  many connections of HTTP/2
- one-commit-each: our server with a commit for every write

## What was promised

A ratio of processor time is that of the peer by ours; one of requests a second is ours by that of the peer: more is
better. Where a value must stay within a bound, less is better.${options.isQuick ? " A quick run has 100 thousand projects for the million." : ""}

${ratioTable(RATIOS, measures, growth ? growthBars(growth) : []).join("\n")}

## The cases

The data: 2,000 projects of about 900 bytes in the organization that asks, 2,000 more in 20 others.

${caseTables(cases, measures).join("\n")}
${growth ? `## As data grows\n\n${growthTables(growth).join("\n")}` : ""}
${existsSync(TRIED) ? readFileSync(TRIED, "utf8") : ""}`;
}

/** Returns the version of an installed package. */
export function versionOf(name: string): string {
  const manifest = join(import.meta.dirname, "../node_modules", name, "package.json");
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}
