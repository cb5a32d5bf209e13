import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

/** A file of a pack, with the content that git has checked. */
export interface PackFile {
  /** As in `pack-<hash>.pack`. */
  readonly name: string;
  readonly bytes: number;
  /** The SHA-256 of its content. */
  readonly digest: string;
}

/** A pack or its index. Git recreates its other files about a pack when they are missing. */
const PACK_FILE = /^pack-[0-9a-f]{40}\.(pack|idx)$/;

/** Returns whether a name is that of a pack or of its index. */
export function isPackFileName(name: string): boolean {
  return PACK_FILE.test(name);
}

/**
 * Describes the files of all packs in a folder.
 *
 * @param known files that need not be read again
 */
export async function readPackFiles(
  folder: string,
  known: readonly PackFile[] = [],
): Promise<readonly PackFile[]> {
  const names = (await readdir(folder)).filter(isPackFileName).toSorted();
  const read = (name: string) => known.find((file) => file.name === name) ?? readPackFile(folder, name);
  return Promise.all(names.map(read));
}

async function readPackFile(folder: string, name: string): Promise<PackFile> {
  const file = await open(join(folder, name), constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    const hash = createHash("sha256");
    const buffer = Buffer.allocUnsafe(Math.min(size, BUFFER_BYTES));
    let bytes = 0;
    while (bytes < size) {
      const { bytesRead } = await file.read(buffer);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
      bytes += bytesRead;
    }
    return { name, bytes, digest: hash.digest("hex") };
  } finally {
    await file.close();
  }
}

/** Number of bytes that are hashed per turn of the event loop; this takes about a millisecond. */
const BUFFER_BYTES = 1_048_576;

/**
 * Copies pack files to another folder. The copies share blocks if the file system supports it, but a change to one
 * file does not affect the other.
 *
 * @throws Error when a copy does not have the expected size and digest
 */
export async function copyPackFiles(from: string, to: string, files: readonly PackFile[]): Promise<void> {
  for (const { name } of files) await copyWhole(join(from, name), join(to, name));
  for (const { name, bytes, digest } of files) {
    const copy = await readPackFile(to, name);
    if (copy.digest !== digest || copy.bytes !== bytes) {
      throw new Error(`${name} does not have the content that git has checked`);
    }
  }
}

/** Copies a file atomically: the copy gets its name once it is complete. */
async function copyWhole(from: string, to: string): Promise<void> {
  const draft = `${to}.draft`;
  await rm(draft, { force: true });
  await copyFile(from, draft, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  await rename(draft, to);
}
