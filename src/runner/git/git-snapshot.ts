import { constants } from "node:fs";
import {
  copyFile,
  type FileHandle,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { platform } from "node:os";
import { dirname, join } from "node:path";
import { WorkFailure } from "../protocol/work-failure.ts";
import { gitFolderOf, isFolder, objectFoldersIn } from "./git-folder.ts";
import type { GitRepository } from "./git-run.ts";
import type { GitTools } from "./git-tools.ts";

/**
 * A repository as commands left it, accessed through a git directory that the runner owns. Settings are the runner's;
 * HEAD, refs, index and ignored paths are copies; objects are linked. Nothing that a command wrote into its `.git`
 * decides what git does or starts.
 */
export interface RepositorySnapshot {
  readonly repository: GitRepository;
  /** A folder of links to the repository's object folders. */
  readonly borrowed: string;
  /**
   * Writes new objects, HEAD, its branch and the index back into the repository.
   *
   * @throws WorkFailure repository_replaced
   */
  writeBack(): Promise<void>;
}

/** The files to copy from a git directory, if they exist. */
const FILES = ["HEAD", "packed-refs", "shallow", "index", "MERGE_HEAD", "MERGE_MODE", "info/exclude"];
/** The name of a shared index, which a split index refers to. */
const SHARED_INDEX = /^sharedindex\.[0-9a-f]+$/;
/** The files of a merge in progress; the next commit ends it. */
const MERGE_FILES = ["MERGE_HEAD", "MERGE_MODE", "MERGE_MSG"];

/** The only settings of a snapshot. */
const CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";

/**
 * Runs a function on a snapshot of a repository and removes the snapshot afterwards.
 *
 * @param folder the top of its working tree
 * @throws WorkFailure repository_replaced when the repository is no longer complete
 */
export async function withSnapshot<T>(
  tools: Pick<GitTools, "scratch">,
  folder: string,
  use: (snapshot: RepositorySnapshot) => Promise<T>,
): Promise<T> {
  const source = gitFolderOf(folder);
  await requireRepository(source);
  const scratch = await mkdtemp(join(tools.scratch, "snapshot-"));
  try {
    const gitFolder = join(scratch, "git");
    await copyData(source, gitFolder);
    const borrowed = join(scratch, "borrowed");
    await linkObjects(join(source, "objects"), gitFolder, borrowed);
    return await use({
      repository: { gitFolder, tree: folder },
      borrowed,
      async writeBack() {
        await requireRepository(source);
        await copyBack(gitFolder, source);
      },
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** @throws WorkFailure repository_replaced */
async function requireRepository(source: string): Promise<void> {
  for (const path of [source, join(source, "objects"), join(source, "refs")]) {
    if (!(await isFolder(path)))
      throw repositoryReplaced("its .git is not a folder with objects and refs any more");
  }
  for (const name of ["commondir", "reftable", "objects/info/alternates"]) {
    if (await exists(join(source, name))) {
      throw repositoryReplaced(
        `.git/${name} makes it depend on something else than its own objects and refs`,
      );
    }
  }
}

function repositoryReplaced(why: string): WorkFailure {
  return new WorkFailure(
    "repository_replaced",
    `the repository is not the one that was checked out: ${why}; leave .git as it was, or clone elsewhere`,
  );
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}

async function copyData(source: string, gitFolder: string): Promise<void> {
  for (const part of ["info", "objects/info"]) await mkdir(join(gitFolder, part), { recursive: true });
  await writeFile(join(gitFolder, "config"), CONFIG);
  const names = await readdir(source);
  const present = FILES.filter((name) => names.includes(name.split("/")[0] ?? ""));
  const shared = names.filter((name) => SHARED_INDEX.test(name));
  for (const name of [...present, ...shared]) await copyRegular(join(source, name), join(gitFolder, name));
  await copyFolder(join(source, "refs"), join(gitFolder, "refs"));
}

/** Copies the folders and regular files in a folder. Node's own copy makes several times as many system calls. */
async function copyFolder(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, copy] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyFolder(source, copy);
    else if (entry.isFile()) await copyRegular(source, copy);
  }
}

/**
 * Lets git read objects through links to the folders that hold them. A link to all of `objects` would include its
 * `info` folder, which can name more repositories.
 */
async function linkObjects(objects: string, gitFolder: string, links: string): Promise<void> {
  await mkdir(links);
  for (const name of await objectFoldersIn(objects)) {
    await requireFiles(join(objects, name));
    await symlink(join(objects, name), join(links, name));
  }
  await writeFile(join(gitFolder, "objects/info/alternates"), `${links}\n`);
}

/**
 * Requires that no object is a link, which could lead git to objects of other repositories.
 *
 * @throws WorkFailure repository_replaced
 */
async function requireFiles(folder: string): Promise<void> {
  const other = (await readdir(folder, { withFileTypes: true })).find((entry) => entry.isSymbolicLink());
  if (other) throw repositoryReplaced("objects of it are links to other files");
}

async function copyBack(gitFolder: string, source: string): Promise<void> {
  for (const name of await objectFoldersIn(join(gitFolder, "objects"))) {
    await makeFolder(source, join("objects", name));
    await copyMissing(join(gitFolder, "objects", name), join(source, "objects", name));
  }
  const head = await readFile(join(gitFolder, "HEAD"), "utf8");
  const ref = /^ref: (refs\/heads\/\S.*)$/m.exec(head)?.[1];
  for (const name of [...(ref === undefined ? [] : [ref]), "index", "HEAD"]) {
    // A branch without commits has no file, and neither has an index without entries.
    if (!(await exists(join(gitFolder, name)))) continue;
    await makeFolder(source, dirname(name));
    await replaceFile(join(gitFolder, name), join(source, name));
  }
  for (const name of MERGE_FILES) await rm(join(source, name), { force: true });
}

/**
 * Makes a folder in a repository without following links.
 *
 * @throws WorkFailure repository_replaced
 */
async function makeFolder(source: string, path: string): Promise<void> {
  let folder = source;
  for (const name of path.split("/").filter((each) => each !== ".")) {
    folder = join(folder, name);
    if (!(await exists(folder))) await mkdir(folder);
    if (!(await isFolder(folder))) throw repositoryReplaced("a folder of its .git is a link or a file");
  }
}

async function copyMissing(from: string, to: string): Promise<void> {
  for (const name of await readdir(from)) {
    if (!(await exists(join(to, name)))) await replaceFile(join(from, name), join(to, name));
  }
}

/** Replaces a file atomically and never writes through a link. */
async function replaceFile(from: string, to: string): Promise<void> {
  const draft = `${to}.chartroom`;
  await rm(draft, { force: true });
  await copyWithTime(from, draft);
  await rename(draft, to);
}

/** Copies a regular file and its time to a new file; does nothing for any other kind of file. */
export async function copyRegular(from: string, to: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    // Open before checking: a concurrent command could replace the file with a link to somebody else's file.
    handle = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if (!(await handle.stat()).isFile()) return;
    await copyWithTime(platform() === "linux" ? `/proc/self/fd/${handle.fd}` : from, to);
  } catch (error) {
    if (handle) throw error;
  } finally {
    await handle?.close();
  }
}

/** Copies to a new file and keeps the time, because git rechecks files that are as new as the index. */
async function copyWithTime(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  const seconds = Math.floor((await stat(from)).mtimeMs / 1_000);
  await utimes(to, seconds, seconds);
}
