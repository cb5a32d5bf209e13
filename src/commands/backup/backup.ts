import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { type DataConfig, keyFileOf } from "../../config/config.ts";
import { type CopyProgress, copyRows } from "../../store/copy-rows.ts";
import { backUp, lockDraft, requireFile, requireNew, restore } from "../../store/sqlite/backup.ts";
import { DATABASE_FILE } from "../../store/sqlite/open.ts";
import { readFile, writeFile } from "../../store/sqlite/portable.ts";
import { asFileError, isDatabaseWriteFailure, makeFolder, writeProblem } from "../folders/file-access.ts";
import { removeEmptyFolders, removingDraft, type WhenInterrupted } from "../folders/interrupted.ts";
import { placeOf } from "../open-data.ts";
import { addressOf, aloneOnDatabase, asDatabaseError } from "../open-database.ts";
import { StartError } from "../start-error.ts";

/** The person at the terminal. */
export interface BackupTerminal {
  /** Prints lines of progress. */
  readonly print: (text: string) => void;
  /** Absent when the caller handles interrupts. */
  readonly whenInterrupted?: WhenInterrupted | undefined;
}

/**
 * Backs up the database in one portable format for both engines; the server may be running. The backup does not
 * contain the keys, so it alone decrypts no credential.
 *
 * @returns the report for the person at the terminal
 * @throws StartError when the backup fails
 */
export async function createBackup(
  config: DataConfig,
  file: string,
  { print, whenInterrupted }: BackupTerminal,
): Promise<string> {
  const folder = dirname(file);
  if (!existsSync(folder))
    throw new StartError(`${file} cannot be written: there is no folder ${folder}: make it, or name another`);
  await asStartError(file, async () => {
    requireNew(file);
    const lock = lockDraft(file);
    if (!lock)
      throw new Error(`another backup to ${file} is being made: wait until it is done, or name another file`);
    const work = async () => {
      try {
        await writeBackup(config, file, print);
      } finally {
        lock.release();
      }
    };
    await removingDraft(file, whenInterrupted, work, () => lock.release());
  });
  return (
    `The backup is in ${file}.\n` +
    `The keys are not in it: keep a copy of ${keyFileOf(config)} apart from it, since neither is of use alone.\n`
  );
}

/** Writes the backup of a data folder, or of the database in the settings. */
async function writeBackup(config: DataConfig, file: string, print: BackupTerminal["print"]): Promise<void> {
  if (!config.databaseUrl) return backUp(config.dataDir, file);
  const { readDatabase } = await import("../../store/postgres/portable.ts");
  await writeFile(file, (target) =>
    asDatabaseError(config, () =>
      readDatabase(addressOf(config), (source) =>
        asFileError(file, () => copyRows(source, target, progressOf(print))),
      ),
    ),
  );
}

/**
 * Restores a backup to the empty database in the settings, or to a data folder.
 *
 * @returns the report for the person at the terminal
 * @throws StartError when the folder or the database is not empty, or the file is not a backup
 */
export async function restoreBackup(
  config: DataConfig,
  file: string,
  { print, whenInterrupted }: BackupTerminal,
): Promise<string> {
  await asStartError(placeOf(config), async () => {
    if (!config.databaseUrl) {
      const made: string[] = [];
      const database = join(config.dataDir, DATABASE_FILE);
      return removingDraft(
        database,
        whenInterrupted,
        () => restore(file, config.dataDir, (folder) => void made.push(...makeFolder(folder))),
        () => removeEmptyFolders(made),
      );
    }
    requireFile(file);
    const { fillDatabase } = await import("../../store/postgres/portable.ts");
    await readFile(file, (source) =>
      aloneOnDatabase(config, () =>
        fillDatabase(addressOf(config), (target) => copyRows(source, target, progressOf(print))),
      ),
    );
  });
  return (
    `The data of ${file} is in ${placeOf(config)}.\n` +
    `Copy the key file of that time to ${keyFileOf(config)} before the server is started.\n`
  );
}

/** Number of rows between lines of progress. */
const ROWS_PER_LINE = 100_000;

/** Prints a line at the start of a copy, and one each time that many more rows of its tables are copied. */
export function progressOf(print: (text: string) => void): CopyProgress {
  let [table, inTable, before, printed] = ["", 0, 0, 0];
  return (name, rows) => {
    if (table === "") print("copying the rows of all tables\n");
    if (name !== table) [table, before] = [name, before + inTable];
    inTable = rows;
    const total = before + inTable;
    if (total - printed < ROWS_PER_LINE) return;
    printed = total;
    print(`copying: ${total} rows so far, the last of ${table}\n`);
  };
}

/** @param target the file that the work writes */
async function asStartError(target: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof StartError) throw error;
    // A system error names a draft and is not worded for people.
    const { syscall, message } = error as NodeJS.ErrnoException;
    const sentence =
      syscall || isDatabaseWriteFailure(error)
        ? `${target} cannot be written: ${writeProblem(error)}`
        : message;
    throw new StartError(sentence, { cause: error });
  }
}
