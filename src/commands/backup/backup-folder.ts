import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { type DataConfig, keyFileOf } from "../../config/config.ts";
import {
  type CopiesKept,
  copiesToRemove,
  nameOfCopy,
  newestCopy,
  timeOfCopy,
} from "../../domain/record/backup-copies.ts";
import { loadKeys } from "../../keys.ts";
import { lockFile } from "../../store/sqlite/lock.ts";
import { makeFolder } from "../folders/file-access.ts";
import { NOTHING_WRITTEN, type WhenInterrupted, written } from "../folders/interrupted.ts";
import { requireKeyFile, requireKeys } from "../open-data.ts";
import { openDataReadOnly } from "../open-read-only.ts";
import { verifyAudit } from "../record/audit.ts";
import { ExitCode, StartError } from "../start-error.ts";
import { createBackup, restoreBackup } from "./backup.ts";

/** A folder of copies, and how many to keep. */
export interface BackupFolder {
  readonly folder: string;
  readonly kept: CopiesKept;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Absent when the caller handles interrupts. */
  readonly whenInterrupted?: WhenInterrupted | undefined;
}

/** A copy that passed its check. */
export interface GoodCopy {
  readonly file: string;
  readonly bytes: number;
  /** Names of the older copies that were removed. */
  readonly removed: readonly string[];
}

/** The folder where a copy is restored for its check. */
const SCRATCH = "checking";

/** Files left by an interrupted run. */
const LEFTOVER = /^(checking|chartroom-\S+\.unchecked(\.draft(\.lock)?)?(-journal|-wal|-shm)?)$/;

const FAILED = ".failed";

/** Shows no progress; an interrupt removes the whole unfinished copy. */
const SILENT = { print: () => undefined };

/** Returns whether a file is a copy that failed its check. */
const isFailedCopy = (name: string) =>
  name.endsWith(FAILED) && timeOfCopy(name.slice(0, -FAILED.length)) !== undefined;

/**
 * Makes a copy of the data in a folder, restores it there and verifies the result. Only then renames the copy to its
 * final name and removes older ones. An interrupted run leaves all older copies, and the next run removes its
 * remains.
 *
 * @throws StartError with the exit code `refused` when no copy was made, and `copyFailed` when the copy failed its
 *   check; that copy stays in the folder under another name until the next run
 */
export async function backUpInto(
  config: DataConfig,
  { folder, kept, now, whenInterrupted }: BackupFolder,
): Promise<GoodCopy> {
  requireKeyFile(config);
  makeFolder(folder);
  const lock = asFolderError(folder, () => lockFile(join(folder, "backup.lock")));
  if (!lock) throw new StartError(`another backup into ${folder} is being made`);
  let copy: GoodCopy | undefined;
  const allowInterrupts = whenInterrupted?.(() => {
    if (copy) return written(copy.file);
    removeAll(folder, (each) => LEFTOVER.test(each));
    return NOTHING_WRITTEN;
  });
  try {
    const at = now();
    const name = nameOfCopy(at);
    const file = join(folder, name);
    const unchecked = join(folder, name.replace(/\.db$/, ".unchecked"));
    asFolderError(folder, () => removeAll(folder, (each) => LEFTOVER.test(each)));
    try {
      await createBackup(config, unchecked, SILENT);
      await asFailedCopy(file, () => check(config, unchecked, join(folder, SCRATCH)));
      copy = asFolderError(folder, () => {
        renameSync(unchecked, file);
        syncFolder(folder);
        const gone = new Set(copiesToRemove(readdirSync(folder), name, kept, now()));
        removeAll(folder, (each) => gone.has(each) || isFailedCopy(each));
        return { file, bytes: statSync(file).size, removed: [...gone].toSorted() };
      });
      return copy;
    } catch (error) {
      if (error instanceof FailedCopy) {
        removeAll(folder, isFailedCopy);
        renameSync(unchecked, `${file}${FAILED}`);
      }
      throw error;
    } finally {
      rmSync(unchecked, { force: true });
      rmSync(join(folder, SCRATCH), { recursive: true, force: true });
    }
  } finally {
    await allowInterrupts?.();
    lock.release();
  }
}

/**
 * Returns the time of the newest good copy in a folder (milliseconds since 1970 UTC); undefined when there is none.
 */
export function lastGoodCopy(folder: string): number | undefined {
  return existsSync(folder) ? newestCopy(readdirSync(folder)) : undefined;
}

/** The error of a copy that exists but failed its check. */
class FailedCopy extends StartError {}

/** Restores a copy, which verifies it, and verifies the keys and audit chains of the result. @throws Error */
async function check(config: DataConfig, file: string, scratch: string): Promise<void> {
  const restored = { ...config, databaseUrl: "", dataDir: scratch, keyFile: keyFileOf(config) };
  await restoreBackup(restored, file, SILENT);
  const store = await openDataReadOnly(restored);
  try {
    await requireKeys(restored, store, loadKeys(restored.keyFile));
  } finally {
    await store.close();
  }
  const { holds, text } = await verifyAudit(restored);
  if (!holds) throw new Error(`its audit log does not verify:\n${text.trimEnd()}`);
}

async function asFailedCopy(file: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    // A full disk does not mean that the copy is bad.
    if (isFull(error)) throw new StartError(`the copy could not be checked: ${(error as Error).message}`);
    throw new FailedCopy(
      `the copy did not pass its check, is kept as ${file}${FAILED}, and no older one goes: ${(error as Error).message}`,
      { cause: error, exitCode: ExitCode.copyFailed },
    );
  }
}

/** Returns whether an error, or one of its causes, is about a full disk. */
function isFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return code === "SQLITE_FULL" || code === "ENOSPC" || code === "EDQUOT" || isFull(error.cause);
}

function removeAll(folder: string, goes: (name: string) => boolean): void {
  for (const name of readdirSync(folder))
    if (goes(name)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** Syncs the folder: a rename is durable only after that. */
function syncFolder(folder: string): void {
  const opened = openSync(folder, "r");
  fsyncSync(opened);
  closeSync(opened);
}

function asFolderError<T>(folder: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new StartError(`the folder ${folder} cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
