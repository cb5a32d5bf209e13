import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Returns the git directory of a repository that has its files in `folder`. */
export function gitFolderOf(folder: string): string {
  return join(folder, ".git");
}

/** The entries of a git directory that are pure data: they name no program, repository or setting. */
const DATA: ReadonlySet<string> = new Set(["HEAD", "index", "objects", "packed-refs", "refs", "shallow"]);

/** Folders of loose objects have two hexadecimal digits. `info` is excluded because it may name other repositories. */
const OBJECTS = /^(pack|[0-9a-f]{2})$/;

/**
 * Removes everything from a git directory except objects, refs and the index. Removes links that lead out of it, and
 * all of a git directory that is not a folder. Does nothing if there is none.
 */
export async function removeAllButData(gitFolder: string): Promise<void> {
  const stat = await lstat(gitFolder).catch(() => undefined);
  if (!stat?.isDirectory()) return rm(gitFolder, { force: true });
  await keep(gitFolder, (name) => DATA.has(name));
  const objects = join(gitFolder, "objects");
  if (await isFolder(objects)) await keep(objects, (name) => OBJECTS.test(name));
}

/** Returns whether a path is a folder, and not a link to one. */
export async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() ?? false;
}

/** Returns the names of the folders that hold a repository's objects. */
export async function objectFoldersIn(objects: string): Promise<readonly string[]> {
  const entries = await readdir(objects, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory() && OBJECTS.test(entry.name)).map(({ name }) => name);
}

async function keep(folder: string, isKept: (name: string) => boolean): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (isKept(entry.name) && (entry.isDirectory() || entry.isFile())) continue;
    await rm(join(folder, entry.name), { recursive: true, force: true });
  }
}
