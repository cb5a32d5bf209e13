import { existsSync } from "node:fs";
import { mkdir, readFile, realpath, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "../../log.ts";
import type { RunnerTools } from "../protocol/assignment.ts";
import { RunnerError } from "../protocol/runner-error.ts";
import { hasState } from "../protocol/runner-state.ts";
import { type Workspace, workspaceAt } from "./workspace.ts";

/** The file that names the runner that owns a folder of workspaces. */
const OWNER_FILE = "owner.json";

interface Owner {
  /** The real path of the folder that has the file. A copy of the folder has another path and so no owner. */
  readonly folder: string;
  /** The real path of the runner's state folder. */
  readonly stateDir: string;
}

/**
 * Returns the state folder of another runner that owns a folder of workspaces, or undefined if this runner or nobody
 * owns it. A runner whose state folder was moved or removed owns nothing.
 *
 * @param stateDir of this runner; exists
 */
async function otherOwner(folder: string, stateDir: string): Promise<string | undefined> {
  const owner = await readOwner(folder);
  if (owner.stateDir === undefined || owner.stateDir === (await realpath(stateDir))) return undefined;
  if (owner.folder !== (await realpath(folder))) return undefined;
  return hasState(owner.stateDir) ? owner.stateDir : undefined;
}

/** Records a runner as the owner of a folder of workspaces, if the folder exists. */
async function claimWorkDir(folder: string, stateDir: string): Promise<void> {
  if (!existsSync(folder)) return;
  const owner: Owner = { folder: await realpath(folder), stateDir: await realpath(stateDir) };
  await replaceFile(ownerFile(folder), owner);
}

/** Returns the file that records the owner of a folder of workspaces. */
function ownerFile(folder: string): string {
  return join(folder, OWNER_FILE);
}

/** Writes a JSON file atomically. */
async function replaceFile(file: string, content: unknown): Promise<void> {
  await writeFile(`${file}.draft`, `${JSON.stringify(content)}\n`, { mode: 0o600 });
  await rename(`${file}.draft`, file);
}

/** Reads the owner; returns an empty object if there is none or a crash left invalid JSON. */
async function readOwner(folder: string): Promise<Partial<Owner>> {
  try {
    return { ...JSON.parse(await readFile(ownerFile(folder), "utf8")) };
  } catch {
    return {};
  }
}

/**
 * The file in the state folder with a JSON list of the folders that may contain workspaces, newest first.
 */
const FILE = "workspaces.json";

/** The subfolders of a folder of workspaces, one for each kind. */
const WORKSPACES = "workspaces";
const PREBUILDS = "prebuilds";

type Folders = Pick<RunnerTools, "workspaces" | "prebuilds" | "earlierWorkDirs">;

/**
 * Creates the folders of a runner's workspaces. Records the folders that it used before, and the state folder, which
 * earlier releases used, since an existing workspace stays where it is. A copied state folder records the folders of
 * the original runner; if that runner still exists, they are ignored.
 *
 * @param stateDir exists
 * @throws RunnerError when the record cannot be read, or the folder belongs to
 *   another runner
 */
export async function prepareWorkDir(
  stateDir: string,
  workDir: string,
  log: Pick<Log, "warn">,
): Promise<Folders> {
  const owner = await otherOwner(workDir, stateDir);
  if (owner !== undefined) {
    throw new RunnerError(
      `the workspaces in ${workDir} belong to the runner whose state is in ${owner}: choose another folder for this one, or remove ${ownerFile(workDir)} if that runner is not used any more`,
    );
  }
  const file = join(stateDir, FILE);
  const recorded = await readFile(file, "utf8").catch(() => "[]");
  const earlier = new Set([...listIn(file, recorded), stateDir]);
  earlier.delete(workDir);
  for (const folder of earlier) {
    const owner = await otherOwner(folder, stateDir);
    if (owner === undefined) continue;
    log.warn({ folder, owner }, OTHER_RUNNER);
    earlier.delete(folder);
  }
  const [workspaces, prebuilds] = [join(workDir, WORKSPACES), join(workDir, PREBUILDS)];
  for (const made of [workspaces, prebuilds]) await mkdir(made, { recursive: true, mode: 0o700 });
  for (const folder of [workDir, ...earlier]) await claimWorkDir(folder, stateDir);
  await replaceFile(file, [workDir, ...earlier]);
  return { workspaces, prebuilds, earlierWorkDirs: [...earlier] };
}

const OTHER_RUNNER =
  "this runner's state was copied from another runner's, which is still there: the workspaces in this folder are left to that one";

function listIn(file: string, text: string): readonly string[] {
  try {
    return JSON.parse(text).map(String);
  } catch {
    throw new RunnerError(`${file} is damaged: remove it, and environments of other folders are lost`);
  }
}

/**
 * Returns the workspace of an environment: the existing one, or else the location for a new one.
 * @param id a UUID
 */
export function environmentWorkspace(folders: Folders, id: string): Workspace {
  return locateWorkspace(folders.workspaces, earlierFolders(folders, WORKSPACES), id);
}

/**
 * Returns the workspace of a prebuild: the existing one, or else the location for a new one.
 * @param id a UUID
 */
export function prebuildWorkspace(folders: Folders, id: string): Workspace {
  return locateWorkspace(folders.prebuilds, earlierFolders(folders, PREBUILDS), id);
}

function earlierFolders({ earlierWorkDirs = [] }: Folders, kind: string): readonly string[] {
  return earlierWorkDirs.map((folder) => join(folder, kind));
}

function locateWorkspace(root: string, earlierRoots: readonly string[], id: string): Workspace {
  const places = [root, ...earlierRoots].map((each) => workspaceAt(each, id));
  return places.find(({ folder }) => existsSync(folder)) ?? workspaceAt(root, id);
}

/** Returns the git working tree that contains a folder, or undefined if there is none. */
export function findWorkingTree(folder: string): string | undefined {
  for (let top = folder; ; top = dirname(top)) {
    if (existsSync(join(top, ".git"))) return top;
    if (top === dirname(top)) return undefined;
  }
}
