import { readFileSync } from "node:fs";
import type { PagePosition } from "../../src/domain/page.ts";
import type { Seeded } from "../data/seed.ts";
import type { Peer } from "../peers/start-peer.ts";

/** The project's server on data of one size. */
export interface GrownServer {
  readonly projects: number;
  readonly data: Seeded;
  readonly peer: Peer;
  /** Returns fifty positions between two fifths and three fifths of the large organization's projects. */
  middle(order: PageOrder): PagePosition[] | Promise<PagePosition[]>;
}

export type PageOrder = "id" | "popularity";

/** The durations of the parts, in seconds, and the number of rounds. */
export interface GrowthSizes {
  readonly projects: readonly number[];
  readonly rounds: number;
  readonly searchSeconds: number;
  readonly sideSeconds: number;
}

/** Returns the anonymous memory of a server (RssAnon), in MB. */
export function anonymousMb({ process: { pid } }: Peer): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) / 1000;
}

/** Prints progress. */
export function logFigures(what: string, figures: Readonly<Record<string, number>>): void {
  const words = Object.entries(figures).map(([name, value]) => `${name} ${value.toFixed(2)}`);
  process.stderr.write(`growth  ${what.padEnd(52)} ${words.join("  ")}\n`);
}
