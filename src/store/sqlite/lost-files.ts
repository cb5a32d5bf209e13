import { existsSync } from "node:fs";
import { join } from "node:path";
import { DATABASE_FILE } from "./database-file.ts";

/** A sentence that says which data of a folder is lost, and what to do. */
export interface LostData {
  readonly what: string;
  readonly advice: string;
}

/** The advice for someone who wants a new installation. */
export const NEW_ELSEWHERE =
  "for a new installation, name another folder with --data-dir, or move away what is in this one";

/**
 * Returns which data of a folder is lost; undefined if no loss is known.
 * @param trace name of the file that a first start creates after the database; a key file may exist before
 */
export function lostData(dataDir: string, trace: string): LostData | undefined {
  const isThere = (name: string) => existsSync(join(dataDir, name));
  // The trace first, since a first start may be creating both.
  if (!isThere(trace) || isThere(DATABASE_FILE)) return undefined;
  const what = `there is no ${DATABASE_FILE} in ${dataDir}, where a server has left ${trace}`;
  return { what, advice: `put it back, or restore a backup; ${NEW_ELSEWHERE}` };
}

/** Returns the loss for a database that was never used, which cannot be the one that the folder's server had. */
export const emptiedData = (dataDir: string, trace: string): LostData => ({
  what: `the ${DATABASE_FILE} in ${dataDir} is empty, although a server has left ${trace}`,
  advice: `restore a backup, or put back ${DATABASE_FILE} and ${DATABASE_FILE}-wal as they were together; ${NEW_ELSEWHERE}`,
});
