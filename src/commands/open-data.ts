import { mkdirSync } from "node:fs";
import { v7 } from "uuid";
import { type Config, keyFileOf } from "../config.ts";
import { type Keys, loadKeys } from "../keys.ts";
import { findFact, insertFact } from "../store/fact.ts";
import { openStore } from "../store/sqlite/open.ts";
import { OPERATOR, type Store } from "../store/store.ts";

/** A problem of the surroundings that the person at the terminal can mend. */
export class StartError extends Error {
  override readonly name = "StartError";
}

export interface OpenData {
  readonly store: Store;
  readonly keys: Keys;
}

/**
 * Opens the data folder with its keys, making both when they are absent.
 *
 * @throws StartError when the key file is not the one that the data was written with
 */
export async function openData(config: Pick<Config, "dataDir" | "keyFile">): Promise<OpenData> {
  const { dataDir } = config;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const keys = loadKeys(keyFileOf(config));
  const store = openStore({ dataDir, now: Date.now, newId: v7, audit: keys.audit });
  try {
    await matchKeys(config, store, keys);
    return { store, keys };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function matchKeys(
  config: Pick<Config, "dataDir" | "keyFile">,
  store: Store,
  keys: Keys,
): Promise<void> {
  const known = await findFact(store.reader, "key_id");
  if (known === undefined) {
    await store.write(OPERATOR, "chartroom serve", (tx) => insertFact(tx, "key_id", keys.id));
  } else if (!keys.ids.includes(known)) {
    throw new StartError(
      `the key file ${keyFileOf(config)} is not the one that the data in ${config.dataDir} was written with`,
    );
  }
}
