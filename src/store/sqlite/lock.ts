import { chmodSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { DATABASE_FILE } from "./open.ts";

/**
 * A lock that is held until the process ends; the operating system releases it, even after a kill.
 */
export interface FolderLock {
  release(): void;
}

/**
 * Time for which commands next to the server may have the database open where the lock's file is
 * missing.
 */
const OTHER_PROCESS_TIMEOUT_MS = 5_000;

/** Removes the file by which this process has locked a data folder, with the engine's journal of it. */
export function removeLockFile(dataDir: string): void {
  for (const file of [`${lockFileOf(dataDir)}-journal`, lockFileOf(dataDir)]) rmSync(file, { force: true });
}

const lockFileOf = (dataDir: string) => join(dataDir, "server.lock");

/**
 * Makes this process the only server of a data folder. Two servers would each group writes and run jobs; commands of
 * the command line do not need the lock. If the lock's file is missing next to a database, for example because
 * somebody moved it, no other process may have the database open.
 * @returns undefined when another process holds it
 */
export function lockFolder(dataDir: string): FolderLock | undefined {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const [file, database] = [lockFileOf(dataDir), join(dataDir, DATABASE_FILE)];
  const isMissing = !existsSync(file);
  const lock = lockFile(file);
  if (lock && isMissing && existsSync(database) && isOpenElsewhere(database)) {
    lock.release();
    // Removed, so that the next start finds it missing, too.
    rmSync(file, { force: true });
    return undefined;
  }
  return lock;
}

/**
 * Locks a file, which is created if needed; its folder exists.
 * @returns undefined when another process holds it
 */
export function lockFile(file: string): FolderLock | undefined {
  // A database file, because its locks are the portable ones.
  const lock = new Database(file, { timeout: 0 });
  try {
    restrictMode(file);
    lock.pragma("journal_mode = DELETE");
    lock.exec("begin exclusive");
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return { release: () => lock.close() };
}

/** Lets only its owner open a file: others who may read it could lock it, and no server would start. */
function restrictMode(file: string): void {
  try {
    chmodSync(file, 0o600);
  } catch {
    // The engine reports, better, why a file cannot be used, and some can be whose mode cannot be changed.
  }
}

/**
 * Returns whether a process has locked a data folder, without locking it; undefined when that cannot be seen, such as
 * for another user.
 */
export function isFolderLocked(dataDir: string): boolean | undefined {
  const file = lockFileOf(dataDir);
  if (!existsSync(file)) return existsSync(join(dataDir, DATABASE_FILE)) ? undefined : false;
  try {
    const lock = new Database(file, { readonly: true, timeout: 0 });
    try {
      lock.prepare("select count(*) from sqlite_schema").get();
      return false;
    } finally {
      lock.close();
    }
  } catch (error) {
    return (error as { code?: string }).code === "SQLITE_BUSY" || undefined;
  }
}

/** Returns whether another process has the database open: each one holds a shared lock on it meanwhile. */
function isOpenElsewhere(database: string): boolean {
  const alone = new Database(database, { timeout: OTHER_PROCESS_TIMEOUT_MS });
  try {
    alone.pragma("locking_mode = EXCLUSIVE");
    alone.exec("begin exclusive; rollback");
    return false;
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith("SQLITE_BUSY")) return true;
    throw error;
  } finally {
    alone.close();
  }
}
