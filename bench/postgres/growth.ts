import { rmSync } from "node:fs";
import { join } from "node:path";
import { anonymousMb, type GrownServer, type GrowthSizes, logFigures } from "../growth/grown-server.ts";
import { sizesOf } from "../growth/growth-data.ts";
import { type PageRow, pageRows } from "../growth/page-times.ts";
import { middleOf } from "../growth/pages.ts";
import { type SearchRow, searchRows } from "../growth/search-times.ts";
import type { Load } from "../load/load.ts";
import { startPeer } from "../peers/start-peer.ts";
import { POSTGRES_SEARCHES } from "./cases.ts";
import type { BenchCluster } from "./cluster.ts";
import { seedDatabase } from "./seed-database.ts";

const FULL = { projects: [1_000, 1_000_000], rounds: 4, searchSeconds: 0.8, sideSeconds: 0 };

/** A quick run uses fewer projects, since a million take too long to create. */
const QUICK = { projects: [1_000, 100_000], rounds: 1, searchSeconds: 0.3, sideSeconds: 0 };

/** The measurements of the project's server as its data grows. */
export interface PostgresGrowth {
  readonly sizes: GrowthSizes;
  readonly pages: readonly PageRow[];
  readonly searches: readonly SearchRow[];
  /** The time to create the largest data, in seconds, and its size on disk, in MB. */
  readonly seedSeconds: number;
  readonly databaseMb: number;
}

/**
 * @param onlySearches true to leave out the pages and the data that they are compared with
 * @param held receives the memory of the server with the most projects after all measurements
 */
export async function measurePostgresGrowth(
  cluster: BenchCluster,
  folder: string,
  load: Load,
  { isQuick, onlySearches }: { readonly isQuick: boolean; readonly onlySearches: boolean },
  held: number[],
): Promise<PostgresGrowth> {
  const all = isQuick ? QUICK : FULL;
  const sizes = { ...all, projects: onlySearches ? all.projects.slice(-1) : all.projects };
  const servers: GrownServer[] = [];
  let [seedSeconds, databaseMb] = [0, 0];
  try {
    for (const projects of sizes.projects) {
      process.stderr.write(`growth  making ${projects.toLocaleString("en")} projects\n`);
      const [began, database] = [performance.now(), `growth_${projects}`];
      const data = await seedDatabase(cluster, database, join(folder, database), sizesOf(projects));
      seedSeconds = (performance.now() - began) / 1000;
      const { rows } = await cluster.run(database, "select pg_database_size(current_database()) as bytes");
      databaseMb = Number(rows[0]?.bytes) / 1e6;
      logFigures(`made ${projects}`, { seconds: seedSeconds, MB: databaseMb });
      const peer = await startPeer("ours", data.dataDir, { databaseUrl: cluster.urlOf(database) });
      servers.push({
        projects,
        data,
        peer,
        async middle(order) {
          const by = order === "id" ? "id" : "popularity desc, id";
          const { rows: all } = await cluster.run(
            database,
            `select id, popularity from project where organization_id = '${data.organizationId}' order by ${by}`,
          );
          return middleOf(all, order);
        },
      });
    }
    const pages = onlySearches ? [] : await pageRows(servers, load, sizes.rounds);
    const searches = await searchRows(servers, load, sizes, POSTGRES_SEARCHES);
    const largest = servers.at(-1);
    if (largest) held.push(anonymousMb(largest.peer));
    return { sizes, pages, searches, seedSeconds, databaseMb };
  } finally {
    for (const { peer, data } of servers) {
      await peer.stop();
      rmSync(data.dataDir, { recursive: true });
    }
  }
}
