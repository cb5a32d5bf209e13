import type { Seeded } from "../data/seed.ts";
import type { Peer } from "../peers/start-peer.ts";

/** Our server on data of one size. */
export interface GrownServer {
  readonly projects: number;
  readonly data: Seeded;
  readonly peer: Peer;
}

/** How long the parts take, in seconds, and how often they are done. */
export interface GrowthSizes {
  readonly projects: readonly number[];
  readonly rounds: number;
  readonly searchSeconds: number;
  readonly sideSeconds: number;
}

/** Tells how far it is. */
export function tellGrowth(what: string, figures: Readonly<Record<string, number>>): void {
  const words = Object.entries(figures).map(([name, value]) => `${name} ${value.toFixed(2)}`);
  process.stderr.write(`growth  ${what.padEnd(52)} ${words.join("  ")}\n`);
}
