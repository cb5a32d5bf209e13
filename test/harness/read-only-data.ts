import { openReadOnlyDatabase } from "../../src/store/postgres/open-read-only.ts";
import { openReadOnly } from "../../src/store/sqlite/open-read-only.ts";
import type { ReadOnlyStore } from "../../src/store/store.ts";
import { databaseUrlOf } from "./data-config.ts";

/** Opens the data of a folder in the one state that it has now, as commands do that verify it. */
export async function openReadOnlyData(dataDir: string): Promise<ReadOnlyStore> {
  const url = databaseUrlOf(dataDir);
  return url ? openReadOnlyDatabase({ url }) : openReadOnly(dataDir);
}
