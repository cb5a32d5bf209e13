import { existsSync } from "node:fs";
import { join } from "node:path";
import { type DataConfig, keyFileOf } from "../config/config.ts";
import { databaseUrl } from "../config/database-settings.ts";
import { type CopyProgress, copyRows, type RowSink, type RowSource } from "../store/copy-rows.ts";
import { lockFolder, removeLockFile } from "../store/sqlite/lock.ts";
import { DATABASE_FILE } from "../store/sqlite/open.ts";
import { readFile, writeFile } from "../store/sqlite/portable.ts";
import { type BackupTerminal, progressOf } from "./backup/backup.ts";
import { asFileError, makeFolder } from "./folders/file-access.ts";
import { removeEmptyFolders, removingDraft, type WhenInterrupted } from "./folders/interrupted.ts";
import { placeOf } from "./open-data.ts";
import { addressOf, aloneOnDatabase } from "./open-database.ts";
import { verifyAudit } from "./record/audit.ts";
import { StartError } from "./start-error.ts";

/** The two ends of a move: each a data folder, or the URL of a database. */
export interface MoveOptions {
  readonly from: string;
  readonly to: string;
}

/**
 * Moves the data between a data folder and a database, with all servers stopped. The source is not changed. At the
 * end, counts the rows of each table on both sides, and verifies every audit chain of the target with the source's
 * keys.
 *
 * @returns the report for the person at the terminal
 * @throws StartError when a side is in use, the target holds anything, or a chain is broken; then nothing is moved,
 *   or the report says what to do
 */
export async function moveData(
  config: DataConfig,
  options: MoveOptions,
  { print, whenInterrupted }: BackupTerminal,
): Promise<string> {
  const [from, to] = [sideOf(config, options.from), sideOf(config, options.to)];
  if ((from.databaseUrl === "") === (to.databaseUrl === ""))
    throw new StartError("one side of a move is a data folder, the other a postgres:// URL");
  const keyFile = keyFileOf({ ...config, dataDir: from.databaseUrl ? to.dataDir : from.dataDir });
  if (!existsSync(keyFile))
    throw new StartError(`there is no key file ${keyFile}: name the one of the server with --key-file`);
  const counts = from.databaseUrl
    ? await toFolder(from, to, progressOf(print), whenInterrupted)
    : await toDatabase(from, to, progressOf(print));
  const rows = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const { holds, text } = await verifyAudit({ ...to, keyFile });
  print(text);
  if (!holds) throw new StartError("a chain of the moved data is broken: compare it with the source's");
  return (
    `${rows} rows of ${counts.size} tables are in ${placeOf(to)}; ${placeOf(from)} is as it was.\n` +
    `Start the servers with ${to.databaseUrl ? "--database-url" : "--data-dir"}, and with the key file ${keyFile}.\n`
  );
}

function sideOf(config: DataConfig, text: string): DataConfig {
  if (!/^postgres(ql)?:/.test(text)) return { ...config, dataDir: text, databaseUrl: "" };
  try {
    return { ...config, databaseUrl: databaseUrl(text) };
  } catch (error) {
    throw new StartError(`the URL of the database ${(error as Error).message}`);
  }
}

type Counts = ReadonlyMap<string, number>;

async function toDatabase(from: DataConfig, to: DataConfig, onProgress: CopyProgress): Promise<Counts> {
  const file = join(from.dataDir, DATABASE_FILE);
  if (!existsSync(file)) throw new StartError(`there is no database in ${from.dataDir}`);
  const { fillDatabase } = await import("../store/postgres/portable.ts");
  return withFolder(from, () =>
    readFile(file, (source) =>
      aloneOnDatabase(to, () => fillDatabase(addressOf(to), (target) => counted(source, target, onProgress))),
    ),
  );
}

async function toFolder(
  from: DataConfig,
  to: DataConfig,
  onProgress: CopyProgress,
  whenInterrupted: WhenInterrupted | undefined,
): Promise<Counts> {
  const file = join(to.dataDir, DATABASE_FILE);
  if (existsSync(file))
    throw new StartError(`there is a database in ${to.dataDir} already: name another folder`);
  const made = makeFolder(to.dataDir);
  const { readDatabase } = await import("../store/postgres/portable.ts");
  const copy = (source: RowSource) =>
    asFileError(file, () => writeFile(file, (target) => counted(source, target, onProgress)));
  let isLocked = false;
  return removingDraft(
    file,
    whenInterrupted,
    () =>
      withFolder(to, () => {
        isLocked = true;
        return aloneOnDatabase(from, () => readDatabase(addressOf(from), copy, "alone"));
      }),
    () => {
      if (isLocked) removeLockFile(to.dataDir);
      removeEmptyFolders(made);
    },
  );
}

async function withFolder<T>({ dataDir }: DataConfig, work: () => Promise<T>): Promise<T> {
  const lock = lockFolder(dataDir);
  if (!lock)
    throw new StartError(`a server or another command uses the data folder ${dataDir}: stop it first`);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** @throws Error when a table of the target does not have as many rows as its source */
async function counted(source: RowSource, target: RowSink, onProgress: CopyProgress): Promise<Counts> {
  const copied = await copyRows(source, target, onProgress);
  for (const [table, rows] of copied) {
    const found = await target.count(table);
    if (found !== rows) throw new Error(`the table ${table} has ${found} rows where ${rows} were copied`);
  }
  return copied;
}
