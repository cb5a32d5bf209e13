import { cpSync } from "node:fs";
import pg from "pg";
import { anonymousMb } from "../growth/grown-server.ts";
import { ROW_QUERIES } from "../peers/same-rows.ts";
import { startPeer } from "../peers/start-peer.ts";
import type { Site } from "../rounds.ts";
import type { BenchCluster } from "./cluster.ts";
import type { SeededDatabase } from "./seed-database.ts";

/** The queries for a project's rows. PostgreSQL has no separate search index, so search texts have no numbers. */
const QUERIES = {
  ...ROW_QUERIES,
  project: "select organization_id, creator_id, desired_phase, search_text, body from project where id = ?",
};

/**
 * Returns a site where each peer has its own copy of the database and of the folder with the keys.
 * @param held receives the memory of each of the project's servers at its end, in MB
 */
export function databaseSite(cluster: BenchCluster, data: SeededDatabase, held: number[]): Site {
  return {
    async start(name, _, copy, nodeFlags) {
      const [folder, database] = [`${data.dataDir}-${copy}`, `${data.database}_${copy.replaceAll("-", "_")}`];
      cpSync(data.dataDir, folder, { recursive: true });
      await cluster.copy(data.database, database);
      const peer = await startPeer(name, folder, { nodeFlags, databaseUrl: cluster.urlOf(database) });
      if (name !== "ours") return peer;
      return {
        ...peer,
        async stop() {
          held.push(anonymousMb(peer));
          await peer.stop();
        },
      };
    },
    async rowsOf({ databaseUrl }, id) {
      const client = new pg.Client({ connectionString: databaseUrl });
      await client.connect();
      try {
        const rows: [string, unknown[]][] = [];
        for (const [table, query] of Object.entries(QUERIES)) {
          rows.push([table, (await client.query(query.replace("?", "$1"), [id])).rows]);
        }
        return Object.fromEntries(rows);
      } finally {
        await client.end();
      }
    },
    databaseMs: () => cluster.processorMs(),
  };
}
