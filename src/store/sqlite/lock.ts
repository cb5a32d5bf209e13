import { mkdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";

/** Held for as long as the process lives; the operating system lets go of it, even after a kill. */
export interface FolderLock {
  release(): void;
}

/**
 * Makes this process the only server of a data folder. Two servers would each
 * group writes and run jobs; commands of the command line do not need it.
 *
 * @returns undefined when another process holds it
 */
export function lockFolder(dataDir: string): FolderLock | undefined {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  // A database file of its own, because its locks are the portable ones.
  const lock = new Database(join(dataDir, "server.lock"), { timeout: 0 });
  try {
    lock.pragma("journal_mode = DELETE");
    lock.exec("begin exclusive");
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return undefined;
    throw error;
  }
  return { release: () => lock.close() };
}
