import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, opendir, readlink, realpath } from "node:fs/promises";
import { platform } from "node:os";
import { dirname, join } from "node:path";
import type { Secrets } from "../../domain/secrets.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { Workspace } from "../steps/workspace.ts";

/** The contract's maximum size of a file's part in an answer (EnvironmentQuestion.ReadFile.max_bytes). */
export const MAX_READ_BYTES = 1_048_576;
/** Maximum number of entries of a folder that are listed; further entries are left out. */
const MAX_ENTRIES = 50_000;

const { O_RDONLY, O_NOFOLLOW, O_DIRECTORY, O_NONBLOCK, O_NOCTTY } = constants;
const AS_FOLDER = O_RDONLY | O_NOFOLLOW | O_DIRECTORY;
/** Opening a pipe or a device must not block. The kind of the file is checked after it is opened. */
const AS_FILE = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

/** An entry of a folder. */
export interface TreeEntry {
  readonly name: Buffer;
  readonly stat: Stats;
}

/** A page of the entries of a folder, sorted by the bytes of their names. */
export interface TreeEntries {
  readonly entries: readonly TreeEntry[];
  readonly hasMore: boolean;
  /** Number of entries beyond the maximum, which are on no page. */
  readonly leftOut: number;
}

/**
 * Lists a folder of a workspace's tree, without `.git`.
 *
 * @throws WorkFailure path_refused, file_absent, file_unfit
 */
export async function listTree(
  workspace: Workspace,
  path: string,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<TreeEntries> {
  const folder = await openInTree(workspace, path, AS_FOLDER);
  try {
    const names: Buffer[] = [];
    let leftOut = 0;
    // Refers to the open folder, even if its name now belongs to something else.
    const place = placeOf(folder);
    for await (const { name } of await opendir(place, { encoding: "buffer" as BufferEncoding })) {
      const bytes = name as unknown as Buffer;
      if (isOfGit(bytes.toString("latin1"))) continue;
      if (names.length < MAX_ENTRIES) names.push(bytes);
      else leftOut++;
    }
    names.sort(Buffer.compare);
    const entries: TreeEntry[] = [];
    for (const name of names.slice(offset, offset + limit)) {
      const file = Buffer.concat([Buffer.from(`${place}/`), name]);
      const stat = await lstat(file).catch(() => undefined);
      if (stat) entries.push({ name, stat });
    }
    return { entries, hasMore: names.length > offset + limit, leftOut };
  } finally {
    await folder.close();
  }
}

/** A part of a file. */
export interface TreeFilePart {
  readonly data: Buffer;
  /** Number of bytes of the file that the part covers. Masking may change the length of `data`. */
  readonly readBytes: number;
  readonly stat: Stats;
}

/**
 * Reads a part of a file in a workspace's tree and masks its secrets.
 *
 * @throws WorkFailure path_refused, file_absent, file_unfit
 */
export async function readTree(
  workspace: Workspace,
  path: string,
  { offset, maxBytes, secrets }: { offset: number; maxBytes: number; secrets: Secrets },
): Promise<TreeFilePart> {
  const file = await openInTree(workspace, path, AS_FILE);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw unfit(path, "is no file with a content");
    // The margins make secrets recognizable that begin before the part or end after it.
    const margin = secrets.longestBytes;
    const first = Math.max(0, offset - margin);
    const text = await readFrom(file, first, offset - first + maxBytes + margin);
    const end = Math.min(text.length, offset - first + maxBytes);
    const readBytes = Math.max(0, end - (offset - first));
    if (readBytes === 0) return { data: Buffer.alloc(0), readBytes, stat };
    return { data: secrets.maskPart(text, offset - first, end), readBytes, stat };
  } finally {
    await file.close();
  }
}

async function readFrom(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let read = 0;
  while (read < length) {
    const { bytesRead } = await file.read(buffer, read, length - read, position + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return buffer.subarray(0, read);
}

/**
 * Opens a file or folder in a tree that programs may change concurrently. Opens each folder of the path relative to the
 * previous one, so that no link is followed, and requires that the result is at the place that its path names.
 */
async function openInTree(workspace: Workspace, path: string, flags: number): Promise<FileHandle> {
  if (platform() !== "linux")
    throw new WorkFailure("machine_unfit", "files can only be read where the runner is on Linux");
  const names = namesIn(path);
  const last = names.length;
  let opened = await openOne(workspace.tree, path, last === 0 ? flags : AS_FOLDER);
  try {
    const root = join(await realpath(dirname(dirname(workspace.tree))), ...lastTwo(workspace.tree));
    await requirePlace(opened, root, path);
    for (const [index, name] of names.entries()) {
      const next = await openOne(`${placeOf(opened)}/${name}`, path, index === last - 1 ? flags : AS_FOLDER);
      await opened.close();
      opened = next;
    }
    await requirePlace(opened, join(root, ...names), path);
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

function lastTwo(tree: string): string[] {
  return tree.split("/").slice(-2);
}

/** Returns a path that refers to an open descriptor. */
function placeOf({ fd }: FileHandle): string {
  return `/proc/self/fd/${fd}`;
}

/** Returns the names of a path, none for the tree itself. @throws WorkFailure path_refused */
function namesIn(path: string): string[] {
  const names = path === "" ? [] : path.split("/");
  if (names.some((name) => name === "" || name === "." || name === "..") || path.includes("\0"))
    throw new WorkFailure("path_refused", "a path is relative, and has no empty names, `.` or `..`");
  if (names.some(isOfGit)) throw new WorkFailure("path_refused", "what belongs to git is not shown");
  return names;
}

function isOfGit(name: string): boolean {
  return name.toLowerCase() === ".git";
}

async function openOne(place: string, path: string, flags: number): Promise<FileHandle> {
  try {
    return await open(place, flags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new WorkFailure("file_absent", `there is no ${JSON.stringify(path)}`);
    if (code === "EACCES" || code === "EPERM") throw unfit(path, "is not open to the runner");
    if (code === "ENAMETOOLONG") throw unfit(path, "is too long");
    throw unfit(path, "is not what was asked for, or goes through a link");
  }
}

/** @throws WorkFailure file_unfit when the open file is not at the expected place */
async function requirePlace(opened: FileHandle, expected: string, path: string): Promise<void> {
  if ((await readlink(placeOf(opened))) !== expected) throw unfit(path, "was moved while it was opened");
}

function unfit(path: string, why: string): WorkFailure {
  return new WorkFailure("file_unfit", `${JSON.stringify(path.slice(0, 1_024))} ${why}`);
}
