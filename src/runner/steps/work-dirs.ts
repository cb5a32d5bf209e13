import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "../../log.ts";
import type { RunnerTools } from "../protocol/assignment.ts";
import { RunnerProblem } from "../protocol/runner-problem.ts";
import { claimWorkDir, otherOwner, ownerFile, replaceFile } from "./work-dir-owner.ts";
import { type Workspace, workspaceAt } from "./workspace.ts";

/** In the state folder: a JSON list of the folders that may hold workspaces, the newest first. */
const FILE = "workspaces.json";

/** In a folder of workspaces, a folder for each kind. */
const WORKSPACES = "workspaces";
const PREBUILDS = "prebuilds";

type Folders = Pick<RunnerTools, "workspaces" | "prebuilds" | "earlierWorkDirs">;

/**
 * Makes the folders of a runner's workspaces. Those that it used before, and the
 * state folder, in which earlier releases had them, are recorded: a workspace
 * stays where it is until it ends. A copy of a state folder records those of the
 * runner that it was copied from, which may be at work: these are left alone.
 *
 * @param stateDir is there
 * @throws RunnerProblem when the record cannot be read, or the folder belongs to another runner
 */
export async function prepareWorkDir(
  stateDir: string,
  workDir: string,
  log: Pick<Log, "warn">,
): Promise<Folders> {
  const owner = await otherOwner(workDir, stateDir);
  if (owner !== undefined) {
    throw new RunnerProblem(
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
    throw new RunnerProblem(`${file} is damaged: remove it, and environments of other folders are lost`);
  }
}

/** Returns the workspace of an environment: where it is, or else where it is to be made. @param id a UUID */
export function environmentWorkspace(folders: Folders, id: string): Workspace {
  return placed(folders.workspaces, earlier(folders, WORKSPACES), id);
}

/** Returns the workspace of a prebuild: where it is, or else where it is to be made. @param id a UUID */
export function prebuildWorkspace(folders: Folders, id: string): Workspace {
  return placed(folders.prebuilds, earlier(folders, PREBUILDS), id);
}

function earlier({ earlierWorkDirs = [] }: Folders, kind: string): readonly string[] {
  return earlierWorkDirs.map((folder) => join(folder, kind));
}

function placed(root: string, earlierRoots: readonly string[], id: string): Workspace {
  const places = [root, ...earlierRoots].map((each) => workspaceAt(each, id));
  return places.find(({ folder }) => existsSync(folder)) ?? workspaceAt(root, id);
}

/** Returns the git working tree that a folder is part of; undefined when it is in none. */
export function workingTreeAround(folder: string): string | undefined {
  for (let top = folder; ; top = dirname(top)) {
    if (existsSync(join(top, ".git"))) return top;
    if (top === dirname(top)) return undefined;
  }
}
