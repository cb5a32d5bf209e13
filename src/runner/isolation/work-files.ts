import { lstat } from "node:fs/promises";
import { proxyVariables, type WorkNetwork } from "../egress/work-network.ts";
import { commandEnvironment, type Programs, type RunCommand } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

/**
 * Returns the function that makes the user of the work the owner of the runner's files. User undefined means the
 * runner's own.
 */
export function createChown(
  programs: Programs,
  user: number | undefined,
): (paths: readonly string[]) => Promise<void> {
  return async (paths) => {
    if (user === undefined || paths.length === 0) return;
    const command = ["-R", "-h", "-P", `${user}:${user}`, "--", ...paths];
    const environment = commandEnvironment(programs, "/");
    const { exit } = await programs.run({ program: "chown", args: command, folder: "/", environment });
    if (exit !== 0)
      throw new WorkFailure("workspace_not_entered", "the files could not be given to the work's user");
  };
}

/** Returns the paths that the user of the work does not own yet. */
export async function ownedByOthers(
  paths: readonly string[],
  user: number | undefined,
): Promise<readonly string[]> {
  if (user === undefined) return [];
  const stats = await Promise.all(paths.map((path) => lstat(path)));
  return paths.filter((_, index) => stats[index]?.uid !== user);
}

/** Returns the existing files and folders that work may read, including the certificate authorities of its network. */
export async function shownOf(
  readable: readonly string[],
  network: WorkNetwork | undefined,
): Promise<readonly string[]> {
  const { authoritiesFile } = network ?? {};
  const wanted = authoritiesFile === undefined ? readable : [...readable, authoritiesFile];
  return (await Promise.all(wanted.map(async (each) => ((await exists(each)) ? [each] : [])))).flat();
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}

/**
 * Wraps a function that runs commands to set a network's variables, and to print refused connections after each
 * command.
 */
export function withNetwork(run: RunCommand, network: WorkNetwork): RunCommand {
  return async (command) => {
    try {
      return await run({ ...command, environment: { ...proxyVariables(network), ...command.environment } });
    } finally {
      const lines = network.takeRefusals().map((line) => `chartroom: ${line}\n`);
      if (lines.length > 0) await command.onOutput?.(Buffer.from(lines.join("")), "stderr");
    }
  };
}
