import { constants, type Stats } from "node:fs";
import { access, lstat } from "node:fs/promises";
import { git, gitBytes, tryGit } from "../git/git-run.ts";
import type { TreeRepository } from "./tree-repository.ts";

/** Files with more bytes are told by their size only. */
export const LARGE_BYTES = 1_048_576;

/** A file that is not compared: a large one, or one that cannot be read. */
export interface LargeFile {
  readonly sizeBytes: number;
  /** Changes whenever the file is written. */
  readonly stamp: string;
}

/** The files of a working tree that git does not ignore. */
export interface StagedTree {
  /** The hash of the tree of all files but the large ones and the repositories inside. */
  readonly tree: string;
  /** Large files that differ from the base or are in none of its files, by their paths in latin1. */
  readonly large: Readonly<Record<string, LargeFile>>;
  /** Paths of repositories inside the tree, in latin1; nothing in them is looked at. */
  readonly repositories: readonly string[];
}

/** Keeps git from looking into submodules: it would start another git there, with the settings of that repository. */
const WITHOUT_SUBMODULES = "--ignore-submodules=all";
/** The tree without entries, which every git knows. */
export const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/**
 * Brings the runner's index up to the files of the working tree.
 * @param base the commit that was checked out; undefined for none
 */
export async function stageTree(repository: TreeRepository, base: string | undefined): Promise<StagedTree> {
  const { tools, call, folder, hasIndex } = repository;
  if (!hasIndex) await git(tools, ["read-tree", base ?? EMPTY_TREE], call);
  // Exits with an error where files differ: the next commands list those.
  await tryGit(tools, ["update-index", "-q", "--refresh"], call);
  const changed = (...options: string[]) =>
    gitBytes(tools, ["diff-files", "-z", "--name-only", ...options, WITHOUT_SUBMODULES], call);
  const gone = pathsIn(await changed("--diff-filter=D"));
  await removePaths(repository, gone);
  const others = pathsIn(await gitBytes(tools, ["ls-files", "-z", "--others", "--exclude-standard"], call));
  const large: Record<string, LargeFile> = {};
  const small: string[] = [];
  const dropped: string[] = [];
  // git lists a repository inside the tree as a folder with a trailing slash.
  const isRepository = (path: string) => path.endsWith("/");
  for (const path of new Set([
    ...pathsIn(await changed()),
    ...others.filter((each) => !isRepository(each)),
  ])) {
    const stat = await lstat(fileOf(folder, path)).catch(() => undefined);
    if (stat?.isDirectory() || !stat) dropped.push(path);
    else if (await isComparable(folder, path, stat)) small.push(path);
    else {
      dropped.push(path);
      large[path] = { sizeBytes: stat.size, stamp: `${stat.size} ${stat.mtimeMs} ${stat.ino}` };
    }
  }
  await removePaths(repository, dropped);
  await git(tools, ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], {
    ...call,
    input: inputOf(small),
  });
  const tree = (await git(tools, ["write-tree"], call)).trim();
  const repositories = others.filter(isRepository).map((path) => path.slice(0, -1));
  return { tree, large, repositories };
}

/** Returns the file of a path in latin1, whatever bytes it has. */
export function fileOf(folder: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(path, "latin1")]);
}

async function isComparable(folder: string, path: string, stat: Stats): Promise<boolean> {
  if (stat.isSymbolicLink()) return true;
  if (!stat.isFile() || stat.size > LARGE_BYTES) return false;
  return access(fileOf(folder, path), constants.R_OK).then(
    () => true,
    () => false,
  );
}

/** Removes paths from the index, without a look at the tree. */
async function removePaths({ tools, call }: TreeRepository, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  await git(tools, ["update-index", "-z", "--force-remove", "--stdin"], { ...call, input: inputOf(paths) });
}

function pathsIn(output: Buffer): string[] {
  return output
    .toString("latin1")
    .split("\0")
    .filter((path) => path !== "");
}

function inputOf(paths: readonly string[]): Buffer {
  return Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
}
