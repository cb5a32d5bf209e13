import pg from "pg";
import { openPostgresStore, type PostgresStoreOptions } from "../../src/store/postgres/open.ts";
import type { Store } from "../../src/store/store.ts";
import type { PostgresCluster } from "./postgres-cluster.ts";

let made = 0;

/** Creates an empty database. @returns its address */
export async function emptyDatabase(cluster: PostgresCluster, options = ""): Promise<string> {
  made += 1;
  const name = `empty_${made}`;
  await onCluster(`${cluster.url}/postgres`, `create database ${name} ${options}`);
  return `${cluster.url}/${name}`;
}

/** Runs one statement on a connection of its own. */
export async function onCluster(url: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Opens a store as one of several processes does, each with ids of its own. */
export function openProcess(url: string, options: Partial<PostgresStoreOptions> = {}): Promise<Store> {
  return openPostgresStore({
    url,
    now: Date.now,
    newId: () => crypto.randomUUID(),
    audit: { keyId: "test", mac: () => new Uint8Array(32) },
    connections: 4,
    ...options,
  });
}
