import "../services/access/hooks.ts";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { type Config, type DataConfig, keyFileOf } from "../config/config.ts";
import { databaseAt } from "../config/database-settings.ts";
import { DomainError } from "../domain/error.ts";
import { type Keys, loadKeys } from "../keys.ts";
import { idMaker } from "../new-id.ts";
import { NewerData, OlderData } from "../store/feature-level.ts";
import { hadOrganization } from "../store/identity/organization.ts";
import type { Presence } from "../store/postgres/locks.ts";
import type { FillProgress } from "../store/row-fill.ts";
import { findNamedKeyIds } from "../store/runner/key-id.ts";
import { DATABASE_FILE } from "../store/sqlite/database-file.ts";
import type { FolderLock } from "../store/sqlite/lock.ts";
import { emptiedData, type LostData, lostData, NEW_ELSEWHERE } from "../store/sqlite/lost-files.ts";
import type { StoreOptions } from "../store/sqlite/open.ts";
import type { Reader, Store } from "../store/store.ts";
import { isDatabaseWriteFailure, makeFolder, writeProblem } from "./folders/file-access.ts";
import { hasTables, InUse, openDatabase } from "./open-database.ts";
import { hasHadServer, SERVER_URL_FILE } from "./server-url.ts";
import { StartError } from "./start-error.ts";

/** Rethrows a domain error, which the operator can fix, as a StartError; rethrows any other error unchanged. */
export function rethrowDomainError(error: unknown): never {
  throw error instanceof DomainError ? new StartError(error.message) : error;
}

export interface OpenData {
  readonly store: Store;
  readonly keys: Keys;
}

/** The options with which a command opens the data. */
export interface OpenOptions extends Pick<StoreOptions, "quotaBytes" | "hasLargeWrites"> {
  /** Called at the start of each migration of data from an earlier release. */
  readonly onMigration?: (name: string) => void;
  /** Called every few seconds while a migration rewrites rows. */
  readonly onMigratedRows?: FillProgress;
  /** Presence among a database's servers; a data folder uses its lock instead. Default "alongside". */
  readonly presence?: Presence;
}

/**
 * Opens the data with its keys: the database in the settings, or the one in the data folder. Creates data and keys
 * when they are absent.
 *
 * @param options with the quota of one organization, and whether a write may exceed the memory; the operator's
 *   commands have no quota
 * @throws StartError when the key file lacks a key that the data was written with, and when part of the data is lost
 */
export async function openData(config: DataConfig, options: OpenOptions = {}): Promise<OpenData> {
  const { dataDir } = config;
  makeFolder(dataDir);
  requireWhole(config);
  const keys = readKeys(config);
  const shared = {
    now: Date.now,
    newId: idMaker(Date.now),
    audit: keys.audit,
    operatorName: userName(),
    ...options,
  };
  // A process alongside a server must not raise the level: the server may be of the previous release.
  const raisesLevel = options.presence !== undefined && options.presence !== "alongside";
  const store = config.databaseUrl
    ? await openDatabase(config, shared)
    : await openFolder(config, { ...shared, raisesLevel });
  try {
    await requireKeys(config, store, keys);
    return { store, keys };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Opens the data for commands that run next to the server. A mistyped folder or database must not become a new
 * installation.
 *
 * @throws StartError also when there is no database, or no key file
 */
export async function openExistingData(config: DataConfig, options: OpenOptions = {}): Promise<OpenData> {
  await requireExistingData(config);
  const data = await openData(config, options);
  if (!config.databaseUrl || (await hadOrganization(data.store.reader))) return data;
  await data.store.close();
  throw nothingIn(config);
}

/**
 * Requires data in the settings, without opening it: that would create the tables of a database.
 *
 * @throws StartError when there is no database, or no key file
 */
export async function requireExistingData(config: DataConfig): Promise<void> {
  requireDatabase(config);
  requireKeyFile(config);
  if (config.databaseUrl && !(await hasTables(config))) throw nothingIn(config);
}

const nothingIn = (config: DataConfig): StartError =>
  new StartError(`there is nothing in ${placeOf(config)}: correct --database-url, or start the server once`);

/** Requires a database in the data folder, unless the settings name another one. @throws StartError */
function requireDatabase(config: DataConfig): void {
  requireWhole(config);
  if (config.databaseUrl || existsSync(join(config.dataDir, DATABASE_FILE))) return;
  throw new StartError(
    `there is no database in ${config.dataDir}: name the folder of the server with --data-dir, or start it once`,
  );
}

/** Requires that no part of the data in a folder is known to be lost. @throws StartError */
function requireWhole({ dataDir, databaseUrl }: DataConfig): void {
  const lost = databaseUrl ? undefined : lostData(dataDir, SERVER_URL_FILE);
  if (lost) throw new StartError(`${lost.what}: ${lost.advice}`);
}

/** Requires that a database without an organization never had one. @throws StartError */
export async function requireBeginning(config: DataConfig, db: Reader): Promise<void> {
  if (!hasHadServer(config.dataDir) || (await hadOrganization(db))) return;
  throw emptied(config);
}

/**
 * Requires that a database without tables may become a new installation. With a mistyped URL, a server would
 * otherwise create its tables there, and another organization.
 * @throws StartError
 */
export async function requireKnownDatabase(config: DataConfig): Promise<void> {
  if (!config.databaseUrl || !hasHadServer(config.dataDir) || (await hasTables(config))) return;
  throw emptied(config);
}

function emptied(config: DataConfig): StartError {
  const { what, advice } = emptiedDataOf(config);
  return new StartError(`${what}: ${advice}`);
}

/** Returns the loss for an empty database, in the settings of a server that has had an organization. */
export function emptiedDataOf(config: DataConfig): LostData {
  const { dataDir, databaseUrl } = config;
  if (!databaseUrl) return emptiedData(dataDir, SERVER_URL_FILE);
  return {
    what: `${placeOf(config)} is empty, although a server has left ${SERVER_URL_FILE} in ${dataDir}`,
    advice: `correct --database-url, restore a backup, or copy a data folder there with chartroom move; ${NEW_ELSEWHERE}`,
  };
}

/**
 * Requires the key file. With a mistyped path, a command would otherwise create a key that decrypts nothing.
 *
 * @throws StartError
 */
export function requireKeyFile(config: DataConfig): void {
  const file = keyFileOf(config);
  if (existsSync(file)) return;
  throw new StartError(`there is no key file ${file}: name the one of the server with --key-file`);
}

/** Returns the location of the data, as a text for the operator. */
export function placeOf({ databaseUrl, dataDir }: DataConfig): string {
  return databaseUrl ? databaseAt(databaseUrl) : dataDir;
}

/**
 * Runs an action on the data in the settings while no server runs.
 *
 * @param what the action, as the first half of a sentence for the operator
 * @throws StartError when a server or another such command uses the data; the action does not run then
 */
export async function withoutServer<T>(
  config: DataConfig,
  what: string,
  run: (data: OpenData) => Promise<T>,
  options: OpenOptions = {},
): Promise<T> {
  // Check this first: locking would create the folder.
  requireDatabase(config);
  const lock = config.databaseUrl ? undefined : await lockData(config);
  if (!lock && !config.databaseUrl) {
    throw new StartError(
      `a server or another command uses the data folder ${config.dataDir}: ${what} while no server runs, so stop it first`,
    );
  }
  try {
    const data = await openExistingData(config, { ...options, presence: "alone" }).catch((error) => {
      if (!(error instanceof InUse)) throw error;
      throw new StartError(`${error.message}: ${what} while no server runs, so stop them first`);
    });
    return await run(data).finally(() => data.store.close());
  } finally {
    lock?.release();
  }
}

/** Opens the store of the data folder. Loads its engine only here, so that servers on PostgreSQL do not load it. */
async function openFolder(config: DataConfig, options: Omit<StoreOptions, "dataDir">): Promise<Store> {
  const { openStore } = await import("../store/sqlite/open.ts");
  return openOrThrow(config, () => openStore({ dataDir: config.dataDir, ...options }));
}

/** Locks the data folder for this process. @returns undefined when another one holds it @throws StartError */
export async function lockData(config: DataConfig): Promise<FolderLock | undefined> {
  requireWhole(config);
  const { lockFolder } = await import("../store/sqlite/lock.ts");
  return openOrThrow(config, () => lockFolder(config.dataDir));
}

/** Returns the name of the operating system's user; some container users have none. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknown";
  }
}

/** Requires that the key file holds every key that a row was written with. @throws StartError */
export async function requireKeys(
  config: DataConfig,
  store: Pick<Store, "reader">,
  keys: Keys,
): Promise<void> {
  const missing = (await findNamedKeyIds(store.reader)).filter((id) => !keys.ids.includes(id));
  if (missing.length === 0) return;
  throw new StartError(
    `the key file ${keyFileOf(config)} is not the one that the data in ${placeOf(config)} was written with: it lacks the key ${missing.join(" and the key ")}`,
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
    if (error instanceof NewerData || error instanceof OlderData)
      throw new StartError(message, { cause: error });
    // An error without a code from the system or the database is a bug and keeps its stack.
    if (typeof code !== "string") throw error;
    const problem = isDatabaseWriteFailure(error) ? writeProblem(error) : message;
    throw new StartError(`the data folder ${dataDir} cannot be used: ${problem}`, { cause: error });
  }
}

function readKeys(config: DataConfig): Keys {
  try {
    return loadKeys(keyFileOf(config));
  } catch (error) {
    throw new StartError((error as Error).message, { cause: error });
  }
}
