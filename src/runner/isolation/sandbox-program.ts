import { access, constants, realpath, stat } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import type { Command } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { SandboxParts } from "./bubblewrap-arguments.ts";
import { isInside, isVisible } from "./system-view.ts";

/**
 * Returns the program of a command as it is to be started in a sandbox: its path there.
 *
 * @throws WorkFailure command_not_started when there is none in the sandbox
 */
export async function findProgram(
  { program, folder, environment: { PATH = "" } }: Command,
  parts: SandboxParts,
): Promise<string> {
  const candidates = program.includes("/")
    ? [resolve(folder, program)]
    : PATH.split(delimiter).map((each) => join(resolve(folder, each), program));
  for (const each of candidates) if (await isRunnable(each, parts)) return each;
  throw new WorkFailure(
    "command_not_started",
    `${program} could not be started: it is no program that isolated work sees, in the system's folders, the workspace or what --isolation-read names`,
  );
}

async function isRunnable(path: string, { view, workspace, tmp, readable }: SandboxParts): Promise<boolean> {
  try {
    // The environment's own /tmp is another one than that of the machine.
    if (isInside(path, "/tmp")) return await isRunnableFile(join(tmp, path.slice("/tmp".length)));
    const real = await realpath(path);
    const own = [workspace.tree, workspace.home, ...readable];
    const isSeen = isVisible(view, real) || (await isAmong(real, own));
    return isSeen && (await isRunnableFile(real));
  } catch {
    return false;
  }
}

async function isAmong(path: string, folders: readonly string[]): Promise<boolean> {
  const reals = await Promise.all(folders.map((each) => realpath(each)));
  return reals.some((each) => isInside(path, each));
}

async function isRunnableFile(path: string): Promise<boolean> {
  await access(path, constants.X_OK);
  return (await stat(path)).isFile();
}
