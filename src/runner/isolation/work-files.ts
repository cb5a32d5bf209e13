import { lstat } from "node:fs/promises";
import { proxyVariables, type WorkNetwork } from "../egress/work-network.ts";
import { commandEnvironment, type Programs, type RunCommand } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

/** Returns the function that gives files of the runner to the user of the work; undefined for the runner's own. */
export function handOverTo(
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

/** Returns the paths that are not yet those of the user of the work. */
export async function ownedByOthers(
  paths: readonly string[],
  user: number | undefined,
): Promise<readonly string[]> {
  if (user === undefined) return [];
  const stats = await Promise.all(paths.map((path) => lstat(path)));
  return paths.filter((_, index) => stats[index]?.uid !== user);
}

/** Returns the files and folders that work may read, those of them that exist, with the authorities of its network. */
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

/** Returns a function that runs commands with the variables of a network, and says after each what was refused. */
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
