import { readFileSync } from "node:fs";
import pg from "pg";
import { startPostgres } from "../../test/harness/postgres-cluster.ts";
import { processorMs, threadsMs } from "../machine.ts";

/** The PostgreSQL cluster of a run, in its own folder. */
export interface BenchCluster {
  readonly folder: string;
  /** Returns the address of a database. */
  urlOf(database: string): string;
  /** Runs a statement in a database. */
  run(database: string, statement: string): Promise<pg.QueryResult>;
  /** Copies a database that has no connections. */
  copy(from: string, to: string): Promise<void>;
  /** Returns the processor time of all its processes, in milliseconds. */
  processorMs(): number;
  stop(): Promise<void>;
}

/**
 * Settings: memory, and planner costs for storage with fast random access. Commits are forced to disk, which is the
 * default; it is listed here so that the page shows it.
 */
export const SETTINGS: readonly string[] = [
  "fsync=on",
  "synchronous_commit=on",
  "full_page_writes=on",
  "shared_buffers=1GB",
  "effective_cache_size=4GB",
  "max_wal_size=4GB",
  "random_page_cost=1.1",
  "max_connections=200",
];

/** Starts the release that npm installs. @param dataFolder an empty folder, removed at the end; default: as for tests */
export async function startCluster(dataFolder?: string): Promise<BenchCluster> {
  const cluster = await startPostgres("embedded", SETTINGS, dataFolder);
  const run = async (database: string, statement: string) => {
    const client = new pg.Client({ connectionString: `${cluster.url}/${database}` });
    await client.connect();
    try {
      return await client.query(statement);
    } finally {
      await client.end();
    }
  };
  return {
    folder: cluster.folder,
    urlOf: (database) => `${cluster.url}/${database}`,
    run,
    async copy(from, to) {
      await run("postgres", `create database ${to} template ${from} strategy file_copy`);
    },
    processorMs() {
      const parent = cluster.processId();
      const children = readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8").trim().split(" ");
      // The parent's time includes that of ended children.
      return children.reduce((sum, child) => sum + threadsMsOrNone(Number(child)), processorMs(parent));
    },
    stop: () => cluster.stop(),
  };
}

function threadsMsOrNone(processId: number): number {
  try {
    return threadsMs(processId);
  } catch {
    // The process ended during the read.
    return 0;
  }
}
