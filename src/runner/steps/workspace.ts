import { constants, rmSync } from "node:fs";
import { cp, lstat, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Checkout } from "../git/git-checkout.ts";
import { commandEnvironment, type Programs } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { pathsOfSmallTree } from "./small-tree.ts";

/** The folders of one environment or prebuild. */
export interface Workspace {
  /** The folder that contains everything. */
  readonly folder: string;
  /** The folder that its commands work on; sources are checked out in it. */
  readonly tree: string;
  /** The HOME of its commands. */
  readonly home: string;
}

/**
 * Returns the workspace with an id, whether it exists or not.
 *
 * @param root the folder of all workspaces of a kind
 * @param id a UUID
 */
export function workspaceAt(root: string, id: string): Workspace {
  // The id becomes a path: no id that the server sends may lead elsewhere.
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
    throw new WorkFailure("path_refused", `${JSON.stringify(id)} is no id of a workspace`);
  }
  const folder = join(root, id);
  return { folder, tree: join(folder, "tree"), home: join(folder, "home") };
}

/**
 * Makes a workspace: first removes whatever is in its place, such as the half of
 * one that a killed runner left; at the end sets a marker. When `fill` throws,
 * the same error is thrown and no workspace is left. Begins once what was begun at the workspace
 * before has ended: work whose lease ran out while the runner was suspended may come back to it
 * before the earlier attempt has noticed, which then removes what it made.
 *
 * @param fill fills the tree and returns what it checked out
 * @param copyFrom a complete workspace, at rest, that it starts as a copy of;
 *   blocks are shared where the file system can
 */
export function createWorkspace(
  programs: Programs,
  workspace: Workspace,
  fill: (workspace: Workspace) => Promise<readonly Checkout[]>,
  copyFrom?: Workspace,
): Promise<readonly Checkout[]> {
  return inTurn(workspace, () => create(programs, workspace, fill, copyFrom));
}

async function create(
  programs: Programs,
  workspace: Workspace,
  fill: (workspace: Workspace) => Promise<readonly Checkout[]>,
  copyFrom: Workspace | undefined,
): Promise<readonly Checkout[]> {
  await remove(programs, workspace);
  try {
    await mkdir(workspace.folder, { recursive: true, mode: 0o700 });
    if (copyFrom) await copyFolders(programs, [copyFrom.tree, copyFrom.home], workspace.folder);
    else for (const part of [workspace.tree, workspace.home]) await mkdir(part);
    const checkouts = await fill(workspace);
    await markComplete(workspace, checkouts);
    return checkouts;
  } catch (error) {
    await remove(programs, workspace).catch(() => undefined);
    throw error;
  }
}

/** What was begun last at each workspace and has not ended, by its folder. */
const begun = new Map<string, Promise<unknown>>();

/** Runs what changes a workspace as a whole once everything that was begun before has ended. */
async function inTurn<T>({ folder }: Workspace, change: () => Promise<T>): Promise<T> {
  const mine = (begun.get(folder) ?? Promise.resolve()).then(change, change);
  begun.set(folder, mine);
  try {
    return await mine;
  } finally {
    if (begun.get(folder) === mine) begun.delete(folder);
  }
}

/** Returns the checkouts of a complete workspace; undefined when there is none or an incomplete one. */
export async function readCheckouts(workspace: Workspace): Promise<readonly Checkout[] | undefined> {
  const text = await readFile(markerOf(workspace), "utf8").catch(() => undefined);
  return text === undefined ? undefined : JSON.parse(text);
}

/**
 * Removes a workspace, also where its commands made it read-only; the marker goes
 * first. Does nothing when there is none. Waits as {@link createWorkspace} does.
 *
 * @throws WorkFailure workspace_not_removed
 */
export function removeWorkspace(programs: Programs, workspace: Workspace): Promise<void> {
  return inTurn(workspace, () => remove(programs, workspace));
}

async function remove(programs: Programs, { folder }: Workspace): Promise<void> {
  if (!(await lstat(folder).catch(() => undefined))) return;
  await rm(markerOf({ folder }), { force: true });
  const left = await removeTree(programs, folder);
  if (left !== "") throw new WorkFailure("workspace_not_removed", `the workspace stays: ${left}`, true);
}

/** Removes a folder, also where it is read-only; returns what kept that from being done, or an empty text. */
async function removeTree(programs: Programs, folder: string): Promise<string> {
  if (removeSmallTree(folder)) return "";
  // By programs: Node cannot remove a path that is longer than the system accepts at once.
  if ((await errorOutput(programs, "rm", ["-rf", "--", folder])) === "") return "";
  await errorOutput(programs, "chmod", ["-R", "u+rwx", "--", folder]);
  return errorOutput(programs, "rm", ["-rf", "--", folder]);
}

/** Removes a folder with few files, which takes less than the start of a program; returns whether it is gone. */
function removeSmallTree(folder: string): boolean {
  if (!pathsOfSmallTree(folder)) return false;
  try {
    rmSync(folder, { recursive: true });
    return true;
  } catch {
    return false;
  }
}

/** Returns the file that marks a complete workspace; holds the checkouts. Written once, before a command runs. */
export function markerOf({ folder }: Pick<Workspace, "folder">): string {
  return join(folder, "complete.json");
}

async function markComplete(workspace: Workspace, checkouts: readonly Checkout[]): Promise<void> {
  const marker = markerOf(workspace);
  await writeFile(`${marker}.draft`, JSON.stringify(checkouts));
  await rename(`${marker}.draft`, marker);
}

/**
 * Copies folders that nothing changes meanwhile into another one; blocks are shared where the file system can. By a
 * program where there is a fit one: Node takes several times as long for many files, on the thread that renews leases.
 */
export async function copyFolders(programs: Programs, folders: readonly string[], to: string): Promise<void> {
  const copies = folders.map((folder) => join(to, basename(folder)));
  // Sockets and pipes of programs that ran there mean nothing in a copy.
  const special = ["(", "-type", "p", "-o", "-type", "s", ")", "-delete"];
  const isCopied =
    (await succeeds(programs, "cp", ["-a", "--reflink=auto", "--", ...folders, to])) &&
    (await succeeds(programs, "find", [...copies, ...special]));
  if (isCopied) return;
  for (const [index, copy] of copies.entries()) {
    await removeTree(programs, copy);
    await copyByNode(folders[index] ?? "", copy);
  }
}

async function copyByNode(from: string, to: string): Promise<void> {
  await cp(from, to, {
    recursive: true,
    mode: constants.COPYFILE_FICLONE,
    preserveTimestamps: true,
    verbatimSymlinks: true,
    // A socket or a pipe makes it fail.
    filter: async (file) => {
      const stat = await lstat(file);
      return stat.isFile() || stat.isDirectory() || stat.isSymbolicLink();
    },
  });
}

/**
 * Marks a folder as one whose subfolders are not related, where the file system can (chattr(1), the attribute T). Ext4
 * then makes the files of each workspace in another part of the disk; in one part, each new file passes over all that
 * were removed there in the last minutes, by runners or others.
 */
export async function spreadSubfolders(programs: Programs, folder: string): Promise<void> {
  await succeeds(programs, "chattr", ["+T", folder]);
}

/** Returns whether a program is there and succeeds. */
async function succeeds(programs: Programs, program: string, args: readonly string[]): Promise<boolean> {
  return (await errorOutput(programs, program, args).catch(() => program)) === "";
}

/** Returns the error output of a program that fails; empty when it succeeds. */
async function errorOutput(programs: Programs, program: string, args: readonly string[]): Promise<string> {
  let text = "";
  const { exit } = await programs.run({
    program,
    args,
    folder: "/",
    environment: commandEnvironment(programs, "/"),
    onOutput: (bytes) => {
      if (text.length < 500) text += bytes.toString();
    },
  });
  return exit === 0 ? "" : text.slice(0, 500).trim() || `${program} ended with ${exit}`;
}
