import { readFileSync } from "node:fs";
import type { PagePosition } from "../../src/domain/page.ts";
import type { Seeded } from "../data/seed.ts";
import type { Peer } from "../peers/start-peer.ts";

/** Our server on data of one size. */
export interface GrownServer {
  readonly projects: number;
  readonly data: Seeded;
  readonly peer: Peer;
  /** Fifty places from two fifths of the way to three fifths of the large organization's projects. */
  middle(order: PageOrder): PagePosition[] | Promise<PagePosition[]>;
}

export type PageOrder = "id" | "popularity";

/** How long the parts take, in seconds, and how often they are done. */
export interface GrowthSizes {
  readonly projects: readonly number[];
  readonly rounds: number;
  readonly searchSeconds: number;
  readonly sideSeconds: number;
}

/** Memory of a server that no file backs, in MB: what the process holds of its own. */
export function heldMb({ process: { pid } }: Peer): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) / 1000;
}

/** Tells how far it is. */
export function tellGrowth(what: string, figures: Readonly<Record<string, number>>): void {
  const words = Object.entries(figures).map(([name, value]) => `${name} ${value.toFixed(2)}`);
  process.stderr.write(`growth  ${what.padEnd(52)} ${words.join("  ")}\n`);
}
