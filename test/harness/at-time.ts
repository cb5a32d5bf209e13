import { v7 } from "uuid";
import { loadKeys } from "../../src/keys.ts";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import type { Store } from "../../src/store/store.ts";
import { databaseUrlOf } from "./data-config.ts";
import type { ReachableServer } from "./server.ts";

/**
 * Works on the data of a running server as if it were another time, such as what a job does some days later.
 * @param now milliseconds since 1970 UTC
 */
export async function atTime<T>(
  { dataDir }: Pick<ReachableServer, "dataDir">,
  now: number,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { audit } = loadKeys(`${dataDir}/key.json`);
  const url = databaseUrlOf(dataDir);
  const settings = { now: () => now, newId: v7, audit };
  const store = url
    ? await openPostgresStore({ url, connections: 3, ...settings })
    : openStore({ dataDir, ...settings });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
