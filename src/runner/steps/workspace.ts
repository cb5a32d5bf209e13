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
 * Returns the paths of the workspace with an id, whether or not it exists.
 *
 * @param root the folder of all workspaces of a kind
 * @param id a UUID
 */
export function workspaceAt(root: string, id: string): Workspace {
  // The id becomes part of a path, so an id from the server must not lead out of the root.
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
    throw new WorkFailure("path_refused", `${JSON.stringify(id)} is no id of a workspace`);
  }
  const folder = join(root, id);
  return { folder, tree: join(folder, "tree"), home: join(folder, "home") };
}

/**
 * Creates a workspace. First removes an existing one, such as a partial one of a killed runner; finally writes a marker.
 * If `fill` throws, removes the workspace and throws the same error. Waits for earlier changes of the same workspace:
 * when a lease expires while the runner is suspended, the work may be assigned to this runner again before the first
 * attempt has noticed and removed its workspace.
 *
 * @param fill fills the tree and returns its checkouts
 * @param copyFrom a complete workspace to start from as a copy; nothing may change it in the meantime. The copy shares
 *   blocks if the file system supports it.
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

/** The last change of each workspace that is still in progress, by folder. */
const begun = new Map<string, Promise<unknown>>();

/** Runs a creation or removal of a workspace after all earlier ones of the same workspace. */
async function inTurn<T>({ folder }: Workspace, change: () => Promise<T>): Promise<T> {
  const mine = (begun.get(folder) ?? Promise.resolve()).then(change, change);
  begun.set(folder, mine);
  try {
    return await mine;
  } finally {
    if (begun.get(folder) === mine) begun.delete(folder);
  }
}

/** Returns the checkouts of a workspace, or undefined if it does not exist or is incomplete. */
export async function readCheckouts(workspace: Workspace): Promise<readonly Checkout[] | undefined> {
  const text = await readFile(markerOf(workspace), "utf8").catch(() => undefined);
  return text === undefined ? undefined : JSON.parse(text);
}

/**
 * Removes a workspace, even if its commands made it read-only. Removes the marker first. Does nothing if the workspace
 * does not exist. Waits like {@link createWorkspace}.
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

/** Removes a folder, even if it is read-only. Returns the error output, or an empty text on success. */
async function removeTree(programs: Programs, folder: string): Promise<string> {
  if (removeSmallTree(folder)) return "";
  // With rm, since Node cannot remove paths that exceed the system's maximum length.
  if ((await errorOutput(programs, "rm", ["-rf", "--", folder])) === "") return "";
  await errorOutput(programs, "chmod", ["-R", "u+rwx", "--", folder]);
  return errorOutput(programs, "rm", ["-rf", "--", folder]);
}

/** Removes a small folder, which is faster than starting a program. Returns whether it is removed. */
function removeSmallTree(folder: string): boolean {
  if (!pathsOfSmallTree(folder)) return false;
  try {
    rmSync(folder, { recursive: true });
    return true;
  } catch {
    return false;
  }
}

/** Returns the file that marks a complete workspace and holds its checkouts. It is written once, before commands run. */
export function markerOf({ folder }: Pick<Workspace, "folder">): string {
  return join(folder, "complete.json");
}

async function markComplete(workspace: Workspace, checkouts: readonly Checkout[]): Promise<void> {
  const marker = markerOf(workspace);
  await writeFile(`${marker}.draft`, JSON.stringify(checkouts));
  await rename(`${marker}.draft`, marker);
}

/**
 * Copies folders into another one and shares blocks if the file system supports it. Nothing may change the folders in the
 * meantime. Uses cp if possible: Node takes several times as long for many files, on the thread that renews leases.
 */
export async function copyFolders(programs: Programs, folders: readonly string[], to: string): Promise<void> {
  const copies = folders.map((folder) => join(to, basename(folder)));
  // Sockets and pipes of programs that ran there are useless in a copy.
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
    // cp fails on a socket or a pipe.
    filter: async (file) => {
      const stat = await lstat(file);
      return stat.isFile() || stat.isDirectory() || stat.isSymbolicLink();
    },
  });
}

/**
 * Marks the subfolders of a folder as unrelated if the file system supports it (chattr(1), attribute T). Ext4 then places
 * each workspace in a different part of the disk. In a shared part, creating a file has to skip all files that were
 * removed there in the last minutes.
 */
export async function spreadSubfolders(programs: Programs, folder: string): Promise<void> {
  await succeeds(programs, "chattr", ["+T", folder]);
}

/** Returns whether a program exists and succeeds. */
async function succeeds(programs: Programs, program: string, args: readonly string[]): Promise<boolean> {
  return (await errorOutput(programs, program, args).catch(() => program)) === "";
}

/** Runs a program and returns its error output if it fails; empty if it succeeds. */
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
