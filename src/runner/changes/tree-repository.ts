import { lstat, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Checkout } from "../git/git-checkout.ts";
import { gitFolderOf } from "../git/git-folder.ts";
import type { GitCall } from "../git/git-run.ts";
import { copyRegular, withSnapshot } from "../git/git-snapshot.ts";
import type { GitTools } from "../git/git-tools.ts";
import { requireInPlace } from "../git/tree-path.ts";
import type { Workspace } from "../steps/workspace.ts";

/** A number of loose objects in one of 256 folders, at which the runner's own objects are thrown away. */
const MAX_OBJECTS_IN_FOLDER = 64;

/** Time that one command of git may take: a tree that keeps it longer cannot be shown. */
const TIMEOUT_MS = 60_000;

/**
 * The attributes that count before those of the tree: which files are text is decided by their content, so that no
 * attribute hides a change.
 */
const ATTRIBUTES = "* !diff\n";

/** A repository of a workspace, seen through an index and objects that are the runner's own. */
export interface TreeRepository {
  readonly tools: GitTools;
  readonly call: GitCall;
  /** The folder of the working tree. */
  readonly folder: string;
  /** True when the index was left by an earlier look at the same tree. */
  readonly hasIndex: boolean;
  /** The file that names the tree which the index holds; absent for one as it was checked out. */
  readonly treeFile: string;
}

/** Returns the folder in which the runner keeps what it knows of the changes of a workspace: outside of its tree. */
export function changesFolderOf({ folder }: Pick<Workspace, "folder">): string {
  return join(folder, "changes");
}

function ownFolderOf(workspace: Pick<Workspace, "folder">, place: number): string {
  return join(changesFolderOf(workspace), String(place));
}

/**
 * Keeps the indexes of new checkouts, which know the files by size and time, so that the first look need not read all
 * of them. Called before any command has run in the workspace.
 */
export async function keepIndexes(workspace: Workspace, checkouts: readonly Checkout[]): Promise<void> {
  for (const [place, { location }] of checkouts.entries()) {
    const own = ownFolderOf(workspace, place);
    await rm(own, { recursive: true, force: true });
    await mkdir(own, { recursive: true });
    await copyRegular(join(gitFolderOf(join(workspace.tree, location)), "index"), join(own, "index"));
  }
}

/** Throws away what the runner knows of a repository: it looks at all files again. */
export async function forgetRepository(workspace: Workspace, place: number): Promise<void> {
  await rm(ownFolderOf(workspace, place), { recursive: true, force: true });
}

/**
 * Uses a repository as commands left it. The settings, the index and the attributes that count are the runner's;
 * nothing is written into the repository, and what git has to store goes into a folder of the runner.
 *
 * @param place the place of the repository among the checkouts of its workspace
 * @throws WorkFailure repository_replaced when the repository is not complete any more
 */
export async function withTreeRepository<T>(
  tools: GitTools,
  workspace: Workspace,
  checkout: Checkout,
  place: number,
  use: (repository: TreeRepository) => Promise<T>,
): Promise<T> {
  const folder = join(workspace.tree, checkout.location);
  const own = ownFolderOf(workspace, place);
  requireInPlace(workspace.tree, checkout.location);
  return withSnapshot(tools, folder, async ({ repository, borrowed }) => {
    if (await isFull(join(own, "objects"))) await rm(own, { recursive: true, force: true });
    const objects = join(own, "objects");
    // Written again each time: nothing else decides which objects are read.
    await rm(join(objects, "info"), { recursive: true, force: true });
    await mkdir(join(objects, "info"), { recursive: true });
    await writeFile(join(objects, "info/alternates"), `${borrowed}\n`);
    await writeFile(join(repository.gitFolder, "info/attributes"), ATTRIBUTES);
    const index = join(own, "index");
    // Of a git that was killed.
    await rm(`${index}.lock`, { force: true });
    const hasIndex = (await lstat(index).catch(() => undefined)) !== undefined;
    const environment = { GIT_INDEX_FILE: index, GIT_OBJECT_DIRECTORY: objects, ...SETTINGS };
    return use({
      tools: { ...tools, timeoutMs: TIMEOUT_MS },
      call: { repository, environment },
      folder,
      hasIndex,
      treeFile: join(own, "tree"),
    });
  });
}

/** Files past 1 MiB are never compared line by line, also those of the base. */
const SETTINGS = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "core.bigFileThreshold",
  GIT_CONFIG_VALUE_0: "1m",
};

async function isFull(objects: string): Promise<boolean> {
  const sample = await readdir(join(objects, "00")).catch(() => []);
  return sample.length > MAX_OBJECTS_IN_FOLDER;
}
