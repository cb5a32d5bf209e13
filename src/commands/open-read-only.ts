import type { DataConfig } from "../config/config.ts";
import { openReadOnly } from "../store/sqlite/open-read-only.ts";
import type { ReadOnlyStore } from "../store/store.ts";
import { addressOf, asDatabaseError } from "./open-database.ts";
import { StartError } from "./start-error.ts";

/**
 * Opens a snapshot of the data for reading. Unlike a store, it can be opened on a full disk.
 *
 * @throws StartError when the data cannot be read, or another release wrote it
 */
export async function openDataReadOnly(config: DataConfig): Promise<ReadOnlyStore> {
  return config.databaseUrl ? await openDatabase(config) : openFolder(config.dataDir);
}

async function openDatabase(config: DataConfig): Promise<ReadOnlyStore> {
  const { openReadOnlyDatabase } = await import("../store/postgres/open-read-only.ts");
  return asDatabaseError(config, () => openReadOnlyDatabase(addressOf(config)));
}

function openFolder(dataDir: string): ReadOnlyStore {
  try {
    return openReadOnly(dataDir);
  } catch (error) {
    throw new StartError((error as Error).message);
  }
}
