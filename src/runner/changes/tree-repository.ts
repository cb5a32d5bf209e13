import { lstat, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Checkout } from "../git/git-checkout.ts";
import { gitFolderOf } from "../git/git-folder.ts";
import type { GitCall } from "../git/git-run.ts";
import { copyRegular, withSnapshot } from "../git/git-snapshot.ts";
import type { GitTools } from "../git/git-tools.ts";
import { requireInPlace } from "../git/tree-path.ts";
import type { Workspace } from "../steps/workspace.ts";

/** Number of loose objects in one of 256 folders above which the runner's own objects are discarded. */
const MAX_OBJECTS_IN_FOLDER = 64;

/** Timeout of a git command. The changes of a tree that takes longer cannot be shown. */
const TIMEOUT_MS = 60_000;

/**
 * Attributes that override those of the tree. Git then decides by content which files are text, so that no attribute
 * hides a change.
 */
const ATTRIBUTES = "* !diff\n";

/** A repository of a workspace, accessed through the runner's own index and objects. */
export interface TreeRepository {
  readonly tools: GitTools;
  readonly call: GitCall;
  /** The folder of the working tree. */
  readonly folder: string;
  /** True if the index exists already, from the checkout or an earlier scan. */
  readonly hasIndex: boolean;
  /** The file with the id of the tree that the index holds; absent while the index is as it was checked out. */
  readonly treeFile: string;
}

/** Returns the folder, outside the tree, where the runner stores its data about a workspace's changes. */
export function changesFolderOf({ folder }: Pick<Workspace, "folder">): string {
  return join(folder, "changes");
}

function ownFolderOf(workspace: Pick<Workspace, "folder">, place: number): string {
  return join(changesFolderOf(workspace), String(place));
}

/**
 * Copies the indexes of new checkouts. They record the size and time of each file, so that the first scan need not read
 * all files. Call it before any command has run in the workspace.
 */
export async function keepIndexes(workspace: Workspace, checkouts: readonly Checkout[]): Promise<void> {
  for (const [place, { location }] of checkouts.entries()) {
    const own = ownFolderOf(workspace, place);
    await rm(own, { recursive: true, force: true });
    await mkdir(own, { recursive: true });
    await copyRegular(join(gitFolderOf(join(workspace.tree, location)), "index"), join(own, "index"));
  }
}

/** Discards the runner's data about a repository. The next scan reads all files. */
export async function forgetRepository(workspace: Workspace, place: number): Promise<void> {
  await rm(ownFolderOf(workspace, place), { recursive: true, force: true });
}

/**
 * Runs `use` with a repository as commands left it, but with the runner's own settings, index and attributes. Nothing is
 * written to the repository: git stores new objects in a folder of the runner.
 *
 * @param place the index of the repository among the checkouts of its workspace
 * @throws WorkFailure repository_replaced when the repository is no longer complete
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
    // Rewritten each time, so that nothing else decides which objects git reads.
    await rm(join(objects, "info"), { recursive: true, force: true });
    await mkdir(join(objects, "info"), { recursive: true });
    await writeFile(join(objects, "info/alternates"), `${borrowed}\n`);
    await writeFile(join(repository.gitFolder, "info/attributes"), ATTRIBUTES);
    const index = join(own, "index");
    // A killed git may have left a lock.
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

/** Files of more than 1 MiB are never compared line by line, not even those of the base. */
const SETTINGS = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "core.bigFileThreshold",
  GIT_CONFIG_VALUE_0: "1m",
};

async function isFull(objects: string): Promise<boolean> {
  const sample = await readdir(join(objects, "00")).catch(() => []);
  return sample.length > MAX_OBJECTS_IN_FOLDER;
}
