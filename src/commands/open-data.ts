import "../services/access/hooks.ts";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { type Config, keyFileOf } from "../config/config.ts";
import { DomainError } from "../domain/error.ts";
import { type Keys, loadKeys } from "../keys.ts";
import { idMaker } from "../new-id.ts";
import { findNamedKeyIds } from "../store/runner/key-id.ts";
import { lockFolder } from "../store/sqlite/lock.ts";
import { DATABASE_FILE, openStore, type StoreOptions } from "../store/sqlite/open.ts";
import type { Store } from "../store/store.ts";
import { makeFolder } from "./check-surroundings.ts";
import { StartError } from "./start-error.ts";

/** Rethrows a domain error as a StartError, which the operator can fix; any other as it is. */
export function rethrowDomainError(error: unknown): never {
  throw error instanceof DomainError ? new StartError(error.message) : error;
}

export interface OpenData {
  readonly store: Store;
  readonly keys: Keys;
}

/**
 * Opens the data folder with its keys, creating both when they are absent.
 *
 * @param onMigration called for each migration that begins on data of an earlier
 *   release
 * @param bounds of the store: the quota of one organization, and whether a write
 *   may exceed the memory; commands of the operator have no quota
 * @throws StartError when the key file lacks a key that the data was written with
 */
export async function openData(
  config: Pick<Config, "dataDir" | "keyFile">,
  onMigration: (name: string) => void = () => {},
  bounds: Pick<StoreOptions, "quotaBytes" | "hasLargeWrites"> = {},
): Promise<OpenData> {
  const { dataDir } = config;
  makeFolder(dataDir);
  const keys = readKeys(config);
  const newId = idMaker(Date.now);
  const store = openOrThrow(config, () =>
    openStore({
      dataDir,
      now: Date.now,
      newId,
      audit: keys.audit,
      operatorName: userName(),
      onMigration,
      ...bounds,
    }),
  );
  try {
    await matchKeys(config, store, keys);
    return { store, keys };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Opens the data folder for commands that run next to the server: a mistyped
 * folder must not become a new installation.
 *
 * @throws StartError also when the folder holds no database
 */
export async function openExistingData(
  config: Pick<Config, "dataDir" | "keyFile">,
  bounds: Pick<StoreOptions, "hasLargeWrites"> = {},
): Promise<OpenData> {
  if (!existsSync(join(config.dataDir, DATABASE_FILE))) {
    throw new StartError(`there is no database in ${config.dataDir}: start the server once`);
  }
  return openData(config, undefined, bounds);
}

/**
 * Runs an action during which no server may run.
 *
 * @param what is done, as the first half of a sentence for the operator
 * @throws StartError when a server or another such command uses the folder;
 *   nothing is done then
 */
export async function withoutServer<T>(
  config: Pick<Config, "dataDir">,
  what: string,
  run: () => Promise<T>,
): Promise<T> {
  const { dataDir } = config;
  const lock = openOrThrow(config, () => lockFolder(dataDir));
  if (!lock) {
    throw new StartError(
      `a server or another command uses the data folder ${dataDir}: ${what} while no server runs, so stop it first`,
    );
  }
  try {
    return await run();
  } finally {
    lock.release();
  }
}

/** Returns the operating system's user; some users of containers have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknown";
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

/**
 * Opens a file in the data folder.
 *
 * @throws StartError when the folder or a file in it cannot be used
 */
export function openOrThrow<T>({ dataDir }: Pick<Config, "dataDir">, open: () => T): T {
  try {
    return open();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // An error without a code of the system or the database is a fault, and keeps its stack.
    if (typeof code !== "string") throw error;
    throw new StartError(`the data folder ${dataDir} cannot be used: ${message}`, { cause: error });
  }
}

function readKeys(config: Pick<Config, "dataDir" | "keyFile">): Keys {
  try {
    return loadKeys(keyFileOf(config));
  } catch (error) {
    throw new StartError((error as Error).message, { cause: error });
  }
}
