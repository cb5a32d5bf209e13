import { existsSync } from "node:fs";
import { mkdir, readFile, realpath, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "../../log.ts";
import type { RunnerTools } from "../protocol/assignment.ts";
import { RunnerError } from "../protocol/runner-error.ts";
import { hasState } from "../protocol/runner-state.ts";
import { type Workspace, workspaceAt } from "./workspace.ts";

/** The file in a folder of workspaces that names the runner to which the folder belongs. */
const OWNER_FILE = "owner.json";

interface Owner {
  /** The real path of the folder that this was written into: a copy of the folder belongs to nobody yet. */
  readonly folder: string;
  /** The real path of the runner's state folder. */
  readonly stateDir: string;
}

/**
 * Returns the state folder of the other runner that a folder of workspaces
 * belongs to; undefined where it belongs to this runner or to nobody. A runner
 * whose state folder was moved or removed owns nothing any more.
 *
 * @param stateDir of this runner; exists
 */
async function otherOwner(folder: string, stateDir: string): Promise<string | undefined> {
  const owner = await readOwner(folder);
  if (owner.stateDir === undefined || owner.stateDir === (await realpath(stateDir))) return undefined;
  if (owner.folder !== (await realpath(folder))) return undefined;
  return hasState(owner.stateDir) ? owner.stateDir : undefined;
}

/** Makes a runner the owner of a folder of workspaces, if the folder exists. */
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

/** Reads the owner; empty where there is none, or where a crash left invalid JSON. */
async function readOwner(folder: string): Promise<Partial<Owner>> {
  try {
    return { ...JSON.parse(await readFile(ownerFile(folder), "utf8")) };
  } catch {
    return {};
  }
}

/**
 * The file in the state folder with a JSON list of the folders that may hold
 * workspaces, the newest first.
 */
const FILE = "workspaces.json";

/** The subfolders of a folder of workspaces, one for each kind. */
const WORKSPACES = "workspaces";
const PREBUILDS = "prebuilds";

type Folders = Pick<RunnerTools, "workspaces" | "prebuilds" | "earlierWorkDirs">;

/**
 * Creates the folders of a runner's workspaces. Those that it used before, and
 * the state folder, in which earlier releases had them, are recorded: a workspace
 * stays where it is until it ends. A copy of a state folder records those of the
 * runner that it was copied from, which may be at work: these are left alone.
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
 * Returns the workspace of an environment: the present one, or else the place for
 * a new one.
 * @param id a UUID
 */
export function environmentWorkspace(folders: Folders, id: string): Workspace {
  return locateWorkspace(folders.workspaces, earlierFolders(folders, WORKSPACES), id);
}

/**
 * Returns the workspace of a prebuild: the present one, or else the place for a
 * new one.
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

/** Returns the git working tree that a folder is part of; undefined when it is in none. */
export function findWorkingTree(folder: string): string | undefined {
  for (let top = folder; ; top = dirname(top)) {
    if (existsSync(join(top, ".git"))) return top;
    if (top === dirname(top)) return undefined;
  }
}
