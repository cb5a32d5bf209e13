import { createHash } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { access, lstat, open, readFile, writeFile } from "node:fs/promises";
import { git, gitBytes } from "../git/git-run.ts";
import type { TreeRepository } from "./tree-repository.ts";

/** Maximum size of a file that is compared. A larger one is described by its size only. */
export const LARGE_BYTES = 1_048_576;

/** A file that is not compared: a large one, or one that cannot be read. */
export interface LargeFile {
  readonly sizeBytes: number;
  /** Changes whenever the file is written. */
  readonly stamp: string;
}

/** The files of a working tree that git does not ignore, and the checked-out commit and branch. */
export interface StagedTree {
  /** The id of a tree, or of a commit with that tree, with all files but large ones and nested repositories. */
  readonly tree: string;
  /** Large files that differ from the base or are not in it, by their paths in latin1. */
  readonly large: Readonly<Record<string, LargeFile>>;
  /** Paths of nested repositories, in latin1. Their content is not scanned. */
  readonly repositories: readonly string[];
  /** The commit that is checked out; empty for none. */
  readonly headCommit: string;
  /** The branch that is checked out; empty for none. */
  readonly branch: string;
}

/** The empty tree, which every git knows. */
export const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/**
 * Updates the runner's index to the files of the working tree.
 * @param base the commit that was checked out; undefined for none
 */
export async function stageTree(repository: TreeRepository, base: string | undefined): Promise<StagedTree> {
  const { tools, call, folder, hasIndex, treeFile } = repository;
  if (!hasIndex) await git(tools, ["read-tree", base ?? EMPTY_TREE], call);
  const { changed, gone, others, ...head } = await statusOf(repository);
  const large: Record<string, LargeFile> = {};
  const small: string[] = [];
  const removed = [...gone];
  // git lists a repository inside the tree as a folder with a trailing slash.
  const isRepository = (path: string) => path.endsWith("/");
  const isKnown = new Set(changed);
  for (const path of [...changed, ...others.filter((each) => !isRepository(each))]) {
    const stat = await lstat(fileOf(folder, path)).catch(() => undefined);
    if (stat && (await isComparable(folder, path, stat))) {
      small.push(path);
      continue;
    }
    if (isKnown.has(path)) removed.push(path);
    if (stat && !stat.isDirectory())
      large[path] = { sizeBytes: stat.size, stamp: `${stat.size} ${stat.mtimeMs} ${stat.ino}` };
  }
  // The file has the id of the index's tree. It is empty during an update, and absent while the index is as checked out.
  let tree = hasIndex
    ? await readFile(treeFile, "utf8").catch(() => base ?? EMPTY_TREE)
    : (base ?? EMPTY_TREE);
  if (removed.length > 0 || small.length > 0 || tree === "") {
    await writeFile(treeFile, "");
    await removePaths(repository, removed);
    if (small.length > 0) {
      await git(tools, ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], {
        ...call,
        input: inputOf(small),
      });
    }
    tree = (await git(tools, ["write-tree"], call)).trim();
    await writeFile(treeFile, tree);
  }
  const repositories = others.filter(isRepository).map((path) => path.slice(0, -1));
  return { tree, large, repositories, ...head };
}

interface TreeStatus extends Pick<StagedTree, "headCommit" | "branch"> {
  /** Paths in the index whose files differ from it, in latin1. */
  readonly changed: readonly string[];
  /** Paths in the index without a file. */
  readonly gone: readonly string[];
  /** Paths of files and, with a slash at the end, repositories that are not in the index. */
  readonly others: readonly string[];
}

/** Compares the index with the working tree in one git process. Ignores the content of submodules. */
async function statusOf({ tools, call }: TreeRepository): Promise<TreeStatus> {
  const options = ["--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all"];
  const output = await gitBytes(tools, ["status", ...options, "--ignore-submodules=all"], call);
  const changed: string[] = [];
  const gone: string[] = [];
  const others: string[] = [];
  let [headCommit, branch] = ["", ""];
  for (const field of output.toString("latin1").split("\0")) {
    const [, name, value = ""] = /^# branch\.(oid|head) (.*)$/s.exec(field) ?? [];
    if (name === "oid") headCommit = value === "(initial)" ? "" : value;
    if (name === "head") branch = value === "(detached)" ? "" : Buffer.from(value, "latin1").toString();
    if (field.startsWith("? ")) others.push(field.slice(2));
    // The state of the file compared with the index is the second letter; the path comes after eight fields.
    const [, state, path = ""] = /^1 .(.) (?:\S+ ){6}(.*)$/s.exec(field) ?? [];
    if (state === "D") gone.push(path);
    else if (state !== undefined && state !== ".") changed.push(path);
  }
  return { changed, gone, others, headCommit, branch };
}

/** Returns the file name for a path in latin1, which may have any bytes. */
export function fileOf(folder: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(path, "latin1")]);
}

/** Maximum size of a file that is read to find out whether its content has changed. */
const MAX_HASHED_BYTES = 256 * 1_024 * 1_024;
const AS_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Returns whether a large file has the content of a git object; false also for a file that cannot be read. */
export async function hasContentOf(
  folder: string,
  path: string,
  { sizeBytes }: LargeFile,
  hash: string,
): Promise<boolean> {
  if (sizeBytes > MAX_HASHED_BYTES) return false;
  const found = createHash(hash.length === 40 ? "sha1" : "sha256").update(`blob ${sizeBytes}\0`);
  try {
    const file = await open(fileOf(folder, path), AS_FILE);
    // The next scan sees bytes that are appended in the meantime.
    for await (const bytes of file.createReadStream({ end: sizeBytes })) found.update(bytes);
    return found.digest("hex") === hash;
  } catch {
    return false;
  }
}

async function isComparable(folder: string, path: string, stat: Stats): Promise<boolean> {
  if (stat.isSymbolicLink()) return true;
  if (!stat.isFile() || stat.size > LARGE_BYTES) return false;
  return access(fileOf(folder, path), constants.R_OK).then(
    () => true,
    () => false,
  );
}

/** Removes paths from the index, whether or not the files exist. */
async function removePaths({ tools, call }: TreeRepository, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  await git(tools, ["update-index", "-z", "--force-remove", "--stdin"], { ...call, input: inputOf(paths) });
}

function inputOf(paths: readonly string[]): Buffer {
  return Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
}
