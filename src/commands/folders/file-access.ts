import { accessSync, constants, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { StartError } from "../start-error.ts";

/** System errors about a file or folder, as texts for the person at the terminal. */
const FILE_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  EROFS: "its file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the quota of this user on that disk is used up",
  ENOTDIR: "it, or a part of its path, is a file",
  EISDIR: "it is a folder",
  ENAMETOOLONG: "its name is too long",
  SQLITE_FULL: "the disk is full: make room there, or use another disk",
};

/** The database engine's error codes for failed writes. */
const UNWRITTEN = /^SQLITE_(FULL|IOERR_(WRITE|FSYNC|TRUNCATE))$/;

/** Errors about creating a folder. */
const FOLDER_PROBLEMS: Readonly<Record<string, string>> = {
  ...FILE_PROBLEMS,
  EEXIST: "it is a link that leads nowhere, or another process has just made it",
  ENOENT: "the system allows no folder there",
};

/** Returns why a file cannot be written, as a text for the person at the terminal. */
export function writeProblem(error: unknown): string {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return { ...FILE_PROBLEMS, ENOENT: "the system allows no file there" }[code] ?? message;
}

/** Returns whether an error is a failed write to a database file. */
export function isDatabaseWriteFailure(error: unknown): boolean {
  return UNWRITTEN.test((error as { readonly code?: string }).code ?? "");
}

/**
 * Runs work that fills a database file, and may use another database.
 * @throws StartError that names the file when it cannot be written; other errors unchanged
 */
export async function asFileError<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDatabaseWriteFailure(error)) throw error;
    throw new StartError(`${file} cannot be written: ${writeProblem(error)}`, { cause: error });
  }
}

/**
 * Creates a folder and its missing parents with one call each. A single call for all of them never returns below
 * /proc, and reports a read-only file system as a missing folder.
 *
 * @param mode by default only the owner has access
 * @returns the created folders, each before those in it
 * @throws StartError when the folder cannot be created or written
 */
export function makeFolder(folder: string, mode = 0o700): string[] {
  try {
    const missing: string[] = [];
    let at = resolve(folder);
    while (!isFolder(at)) {
      missing.unshift(at);
      at = dirname(at);
    }
    for (const each of missing) mkdirSync(each, { mode });
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return missing;
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    throw new StartError(`the folder ${folder} cannot be used: ${FOLDER_PROBLEMS[code] ?? message}`, {
      cause: error,
    });
  }
}

function isFolder(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found && !found.isDirectory()) {
    throw Object.assign(new Error(`${path} is no folder`), { code: "ENOTDIR" });
  }
  return found !== undefined;
}

/**
 * Reads a text file, or a pipe that another process writes.
 * @throws StartError for anything else: a device such as /dev/zero has no end
 */
export function readText(file: string): string {
  try {
    const found = statSync(file);
    if (found.isDirectory()) throw new Error("it is a folder");
    if (!found.isFile() && !found.isFIFO()) throw new Error("it is no file");
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "there is no such file" : message;
    throw new StartError(`${file} cannot be read: ${reason}`, { cause: error });
  }
}
