import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type Database from "better-sqlite3";
import { runBackupTask } from "./backup-thread.ts";
import { type FolderLock, lockFile } from "./lock.ts";
import { MIGRATIONS } from "./migrate.ts";
import { DATABASE_FILE } from "./open.ts";

/**
 * Writes the committed state of this moment to a new file, readable by its owner only, while a
 * server continues reading and writing. The file appears whole or not at all, and is durable when
 * this returns.
 * @throws Error with a sentence for the operator when there is nothing to copy or the file exists
 */
export async function backUp(dataDir: string, file: string): Promise<void> {
  const database = join(dataDir, DATABASE_FILE);
  if (!existsSync(database)) throw new Error(`the folder ${dataDir} holds no ${DATABASE_FILE}`);
  await copyWhole(database, file);
}

/**
 * Creates a data folder from a backup. It cannot be served without a key file, which is not part of
 * a backup.
 * @param makeFolder creates the folder, once the file has been found whole
 * @throws Error with a sentence for the operator when the folder contains anything, or the file is
 * not a complete backup that this release can read
 */
export async function restore(
  file: string,
  dataDir: string,
  makeFolder: (folder: string) => void,
): Promise<void> {
  requireFile(file);
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0) {
    throw new Error(`the folder ${dataDir} is not empty: name one that is, or one that does not exist`);
  }
  await runBackupTask({ task: "requireCurrent", file });
  makeFolder(dataDir);
  await copyWhole(file, join(dataDir, DATABASE_FILE));
}

/** Requires a regular file: the engine would wait at a pipe forever. @throws Error with a sentence for the operator */
export function requireFile(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) throw new Error(`there is no file ${file}`);
  if (!found.isFile()) throw new Error(`${file} is no file: name that of a backup`);
}

/** Checks every page, that each index matches its table, and that all referenced rows exist. @throws Error */
function requireSoundDatabase(raw: Database.Database): void {
  const damage = raw.pragma("integrity_check(1)", { simple: true });
  if (damage !== "ok") throw new Error(String(damage));
  const lost = raw.prepare("select 1 from pragma_foreign_key_check").all().length;
  if (lost > 0) throw new Error(`${lost} of its rows refer to rows that do not exist`);
}

/** @throws Error with a sentence for the operator when the file exists */
export function requireNew(file: string): void {
  if (existsSync(file)) throw new Error(`${file} exists already: name a file that does not`);
}

/**
 * Locks the draft of a file, so that only one process writes it. The lock's file exists until the release, or until
 * the next process takes the lock of one that was killed.
 * @returns undefined when another process holds it
 * @throws Error of the system when no file can be created there
 */
export function lockDraft(file: string): FolderLock | undefined {
  const name = `${draftOf(file)}.lock`;
  // The engine's error would not say why the file cannot be created.
  closeSync(openSync(name, "a", 0o600));
  const lock = lockFile(name);
  if (!lock) return undefined;
  return {
    release() {
      rmSync(name, { force: true });
      lock.release();
    },
  };
}

/** Removes the draft of a file, with the journal that the engine leaves where the disk is full or the process ended. */
export function removeDraft(file: string): void {
  for (const each of [`${draftOf(file)}-journal`, draftOf(file)]) rmSync(each, { force: true });
}

/** Returns the name under which a file is written until it is complete. */
export function draftOf(file: string): string {
  return `${file}.draft`;
}

/**
 * Makes the complete draft of a file durable and gives it the file's name.
 * @throws Error with a sentence for the operator when another process created the file meanwhile
 */
export function publishDraft(file: string): void {
  const draft = draftOf(file);
  const written = openSync(draft, "r");
  fsyncSync(written);
  closeSync(written);
  requireNew(file);
  // Unlike a rename, it never replaces a file.
  linkSync(draft, file);
}

/** Copies the committed state of a database to a new file, which appears whole or not at all. */
async function copyWhole(database: string, file: string): Promise<void> {
  const draft = draftOf(file);
  removeDraft(file);
  // Empty, so that the engine accepts it and keeps its mode.
  writeFileSync(draft, "", { mode: 0o600, flag: "wx" });
  try {
    await runBackupTask({ task: "copy", file: database, into: draft });
    publishDraft(file);
  } finally {
    removeDraft(file);
  }
}

/** @throws Error with a sentence for the operator when a file is no complete database that this release can read */
export function requireCurrentDatabase(raw: Database.Database, file: string): void {
  let names: string[];
  try {
    requireSoundDatabase(raw);
    names = raw.prepare<[], string>("select name from migration order by position").pluck().all();
  } catch (error) {
    throw new Error(`${file} is no backup, or it is damaged: ${(error as Error).message}`);
  }
  const newer = names.find((name, position) => MIGRATIONS[position]?.name !== name);
  if (newer !== undefined) {
    throw new Error(`${file} was written by a newer release, which has ${newer}: restore it with that one`);
  }
}
