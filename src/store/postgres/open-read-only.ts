import type { ReadOnlyStore } from "../store.ts";
import { builderOver, type DatabaseAddress, plainConfig } from "./connection.ts";
import { requireMigrated } from "./migrate.ts";
import { OneAtATimeClient } from "./one-at-a-time.ts";

/**
 * Opens a database for reading, in the one state that it has now, without changing a row and without migrating it.
 * @throws Error with a sentence for the operator when another release wrote it
 */
export async function openReadOnlyDatabase(address: DatabaseAddress): Promise<ReadOnlyStore> {
  const client = new OneAtATimeClient(plainConfig(address));
  await client.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    await requireMigrated(client);
  } catch (error) {
    await client.end();
    throw error;
  }
  return { reader: builderOver((query) => client.query(query), true), close: () => client.end() };
}
