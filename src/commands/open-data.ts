import { mkdirSync } from "node:fs";
import { v7 } from "uuid";
import { type Config, keyFileOf } from "../config.ts";
import { type Keys, loadKeys } from "../keys.ts";
import { findNamedKeyIds } from "../store/key-id.ts";
import { openStore } from "../store/sqlite/open.ts";
import type { Store } from "../store/store.ts";

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
 * @throws StartError when the key file lacks a key that the data was written with
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
  const missing = (await findNamedKeyIds(store.reader)).filter((id) => !keys.ids.includes(id));
  if (missing.length === 0) return;
  throw new StartError(
    `the key file ${keyFileOf(config)} is not the one that the data in ${config.dataDir} was written with: it lacks the key ${missing.join(" and the key ")}`,
  );
}
