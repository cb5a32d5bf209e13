import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunnerConfig } from "../config/config.ts";
import type { Log } from "../log.ts";
import { type Runner, type RunnerOptions, startRunner } from "../runner/process/start-runner.ts";
import { RunnerError } from "../runner/protocol/runner-error.ts";
import { type FolderLock, lockFile } from "../store/sqlite/lock.ts";
import type { Terminal } from "./definitions/command-line.ts";
import { StartError } from "./start-error.ts";

type RemoteConfig = Pick<
  RunnerConfig,
  "allowPrivateRemotes" | "allowFileRemotes" | "plainHttpHosts" | "sshKeyFile"
>;

/** Returns the options of a runner that come from its machine. */
export function machineOptions(
  { allowPrivateRemotes, allowFileRemotes, plainHttpHosts, sshKeyFile }: RemoteConfig,
  { env, signalGroup }: Terminal,
  log: Log,
): Pick<RunnerOptions, "remotes" | "sshKeyFile" | "version" | "signalGroup" | "path" | "log"> {
  return {
    remotes: { allowPrivateAddresses: allowPrivateRemotes, allowFiles: allowFileRemotes, plainHttpHosts },
    sshKeyFile: sshKeyFile || undefined,
    version: version(),
    signalGroup,
    path: env.PATH ?? "",
    log,
  };
}

/**
 * Starts a runner in its locked state folder, and warns if it runs as root.
 *
 * @throws StartError when this machine cannot be a runner, or another one works in the folder
 */
export async function startRunnerOnMachine(
  options: RunnerOptions,
  { isRoot }: Pick<Terminal, "isRoot">,
): Promise<Runner> {
  const lock = lockStateDir(options.stateDir);
  try {
    if (isRoot) options.log.warn({}, AS_ROOT);
    const runner = await startRunner(options);
    const release = () => lock.release();
    runner.ended.then(release, release);
    return runner;
  } catch (error) {
    lock.release();
    return rethrowRunnerError(error);
  }
}

/** @throws StartError when another process holds the lock, or the folder cannot be used */
function lockStateDir(stateDir: string): FolderLock {
  let lock: FolderLock | undefined;
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    lock = lockFile(join(stateDir, "runner.lock"));
  } catch (error) {
    throw new StartError(`the folder ${stateDir} cannot be used: ${(error as Error).message}`);
  }
  if (lock) return lock;
  throw new StartError(
    `another runner works in ${stateDir}: stop it, or give this one a folder of its own (--state-dir)`,
  );
}

const AS_ROOT =
  "the runner runs as root: every command of a workflow and every agent may do anything on this machine; start it as a user of its own that holds nothing else";

/** Rethrows errors that the runner's operator can fix as StartError. */
export function rethrowRunnerError(error: unknown): never {
  throw error instanceof RunnerError ? new StartError(error.message) : error;
}

/** Returns the version of this program. */
function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return JSON.parse(text).version;
}
