import { statfsSync } from "node:fs";

/** Problems that the operator can solve, by the beginning of the engine's code. */
const PROBLEMS: readonly (readonly [code: string, problem: string])[] = [
  ["SQLITE_FULL", "the disk of the data folder is full"],
  ["SQLITE_READONLY", "the database may not be written: its file or file system is read-only"],
  ["SQLITE_PERM", "the database may not be written by this user"],
  ["SQLITE_CANTOPEN", "a file of the database cannot be opened"],
  ["SQLITE_CORRUPT", "the database file is damaged: restore a backup"],
  ["SQLITE_NOTADB", "the database file is damaged: restore a backup"],
  ["SQLITE_IOERR", "the disk of the data folder fails"],
];

/**
 * Returns why the engine accepts no changes, in words for the operator; undefined for other errors,
 * including busy.
 */
export function storageProblem(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code !== "string") return undefined;
  return PROBLEMS.find(([begin]) => code.startsWith(begin))?.[1];
}

/** Returns whether the engine reports that syncing to disk failed. */
export function isSyncFailure(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === "SQLITE_IOERR_FSYNC";
}

/**
 * Errors that the statement or its rows cause, by the beginning of the engine's code: they recur
 * with the same rows.
 */
const CAUSED_BY_ROWS = [
  "SQLITE_ERROR",
  "SQLITE_CONSTRAINT",
  "SQLITE_MISMATCH",
  "SQLITE_TOOBIG",
  "SQLITE_RANGE",
];

/**
 * Returns whether the engine itself failed, as with a full disk or a lock: the same statement may
 * succeed later.
 */
export function isEngineFailure(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code !== "string" || !code.startsWith("SQLITE_")) return false;
  return !CAUSED_BY_ROWS.some((begin) => code.startsWith(begin));
}

/**
 * Free space below which a change of a few pages may succeed, but the next one of the largest
 * request may not.
 */
const MIN_FREE_BYTES = 4 * 1024 * 1024;

/** Returns whether the disk of a folder has space for changes of any size. */
export function hasFreeSpace(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= MIN_FREE_BYTES;
}
