import { join } from "node:path";
import { type Load, startLoad } from "../load/load.ts";
import { startPeer } from "../peers/start-peer.ts";
import { anonymousMb, type GrownServer, type GrowthSizes } from "./grown-server.ts";
import { growthData } from "./growth-data.ts";
import { type PageRow, pageRows } from "./page-times.ts";
import { middleInFolder } from "./pages.ts";
import { type SearchRow, searchRows } from "./search-times.ts";
import { SEARCH_KINDS } from "./searches.ts";
import { readDuringSearches, readDuringWrites, type SideBySide } from "./side-by-side.ts";

const FULL: GrowthSizes = {
  projects: [1_000, 100_000, 1_000_000],
  rounds: 5,
  searchSeconds: 0.8,
  sideSeconds: 4,
};

/** A quick run uses fewer projects, since a million take too long to create. */
const QUICK: GrowthSizes = { projects: [1_000, 100_000], rounds: 1, searchSeconds: 0.3, sideSeconds: 0.6 };

/** The measurements of the project's server as its data grows. */
export interface Growth {
  readonly sizes: GrowthSizes;
  readonly pages: readonly PageRow[];
  readonly searches: readonly SearchRow[];
  readonly searching: SideBySide;
  readonly writing: SideBySide;
  /** Memory of the server with the most projects after all measurements, in MB. */
  readonly anonymousMb: number;
}

export async function measureGrowth(folder: string, load: Load, isQuick: boolean): Promise<Growth> {
  const sizes = isQuick ? QUICK : FULL;
  const servers: GrownServer[] = [];
  const other = startLoad();
  try {
    for (const projects of sizes.projects) {
      process.stderr.write(`growth  making ${projects.toLocaleString("en")} projects\n`);
      const data = await growthData(projects, join(folder, `growth-${projects}`));
      const peer = await startPeer("ours", data.dataDir);
      servers.push({ projects, data, peer, middle: (order) => middleInFolder(data, order) });
    }
    const largest = servers.at(-1) as GrownServer;
    const pages = await pageRows(servers, load, sizes.rounds);
    const searches = await searchRows(servers, load, sizes, SEARCH_KINDS);
    const searching = await readDuringSearches(largest, load, other, sizes);
    const writing = await readDuringWrites(largest, load, other, sizes);
    return { sizes, pages, searches, searching, writing, anonymousMb: anonymousMb(largest.peer) };
  } finally {
    other.stop();
    for (const { peer } of servers) await peer.stop();
  }
}
