import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "../process/command.ts";
import type { SandboxParts } from "./bubblewrap-arguments.ts";
import type { GitPlace } from "./isolation.ts";
import { isInside, type SystemView } from "./system-view.ts";

export interface GitSandboxOptions {
  /** The folder for files that all sandboxes share. */
  readonly folder: string;
  readonly view: SystemView;
  /** The folder that is its /etc. */
  readonly etc: string;
  /** A file that nobody may use. */
  readonly deniedFile: string;
  readonly place: GitPlace;
}

/**
 * Makes the parts of a sandbox for one call of git, which are removed afterwards. Of what the operator shows to work
 * it sees nothing, and of the machine's other folders its place alone.
 */
export async function withGitSandbox<T>(
  { folder, view, etc, deniedFile, place }: GitSandboxOptions,
  use: (parts: SandboxParts) => Promise<T>,
): Promise<T> {
  const scratch = await mkdtemp(join(folder, "git-"));
  const [home, tmp, tree] = ["home", "tmp", "tree"].map((name) => join(scratch, name)) as Three;
  try {
    for (const each of [home, tmp, tree]) await mkdir(each, { mode: 0o700 });
    return await use({
      view: { ...view, readable: [] },
      workspace: { folder: scratch, tree, home },
      tmp,
      etc,
      deniedFile,
      // That of the machine: the runner has checked where git is to connect to.
      hasNetwork: true,
      ...place,
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

type Three = [string, string, string];

/** Returns a command as it runs in a sandbox for git: in its HOME, unless it sees the folder that is named. */
export function commandInGitSandbox(
  { workspace: { home }, readable, writable = [] }: SandboxParts,
  command: Command,
): Command {
  const isSeen = [...readable, ...writable].some((each) => isInside(command.folder, each));
  return {
    ...command,
    folder: isSeen ? command.folder : home,
    environment: { ...command.environment, HOME: home },
  };
}
