import { type Config, keyFileOf } from "../config/config.ts";
import { backUp, restore } from "../store/sqlite/backup.ts";
import { StartError } from "./start-error.ts";

/**
 * Backs up the database of a data folder; the server may be running. The keys are
 * not part of it, so that a backup alone decrypts no credential.
 *
 * @returns the report for the person at the terminal
 * @throws StartError when the backup fails
 */
export function createBackup(config: Pick<Config, "dataDir" | "keyFile">, file: string): string {
  asStartError(() => backUp(config.dataDir, file));
  return (
    `The backup is in ${file}.\n` +
    `The keys are not in it: keep a copy of ${keyFileOf(config)} apart from it, since neither is of use alone.\n`
  );
}

/**
 * Restores a data folder from a backup.
 *
 * @returns the report for the person at the terminal
 * @throws StartError when the folder is not empty or the file is no backup
 */
export function restoreBackup(config: Pick<Config, "dataDir" | "keyFile">, file: string): string {
  asStartError(() => restore(file, config.dataDir));
  return (
    `The data of ${file} is in ${config.dataDir}.\n` +
    `Copy the key file of that time to ${keyFileOf(config)} before the server is started.\n`
  );
}

function asStartError(work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new StartError((error as Error).message);
  }
}
