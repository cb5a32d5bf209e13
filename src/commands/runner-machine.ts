import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunnerConfig } from "../config/config.ts";
import type { ISOLATION_SETTINGS } from "../config/isolation-settings.ts";
import type { Log } from "../log.ts";
import { type NamedHosts, readNamedHosts } from "../runner/egress/named-hosts.ts";
import { requireGitVersion } from "../runner/git/git-tools.ts";
import { type ChosenIsolation, chooseIsolation } from "../runner/isolation/choose-isolation.ts";
import { workLimitsOf } from "../runner/isolation/limits.ts";
import { createCommandRunner } from "../runner/process/command.ts";
import { type Runner, type RunnerOptions, startRunner } from "../runner/process/start-runner.ts";
import { RunnerError } from "../runner/protocol/runner-error.ts";
import { WorkFailure } from "../runner/protocol/work-failure.ts";
import { type FolderLock, lockFile } from "../store/sqlite/lock.ts";
import type { Terminal } from "./definitions/command-line.ts";
import { makeFolder } from "./folders/file-access.ts";
import { StartError } from "./start-error.ts";

type IsolationConfig = Pick<RunnerConfig, keyof typeof ISOLATION_SETTINGS>;

/**
 * Chooses the isolation for a runner's work.
 *
 * @param hidden files and folders that no work may see; empty names are ignored
 * @throws StartError when no isolation that the operator accepts works on this machine
 */
export async function chooseIsolationOnMachine(
  config: IsolationConfig,
  hidden: readonly string[],
  { env, isRoot, signalGroup }: Terminal,
  log: Log,
): Promise<ChosenIsolation> {
  const {
    isolation,
    isolationRead: readable,
    isolationUser: user,
    isolationCgroup: cgroup,
    isolationImage: image,
    isolationRepositoryImages: allowed,
    isolationDevcontainerCli: cli,
    isolationBuiltImages: most,
  } = config;
  return chooseIsolation({
    isolation,
    readable,
    user,
    cgroup,
    image,
    repositoryImages: { allowed, cli, most },
    env,
    isRoot,
    hidden: hidden.filter((path) => path !== ""),
    limits: workLimitsOf(config),
    path: env.PATH ?? "",
    signalGroup,
    log,
  }).catch(rethrowRunnerError);
}

type MachineConfig = Pick<
  RunnerConfig,
  | "allowPrivateRemotes"
  | "allowFileRemotes"
  | "plainHttpHosts"
  | "sshKeyFile"
  | "egressHosts"
  | "egressPrivate"
  | "allowApiAgents"
>;

/**
 * Returns the runner options that come from its machine.
 *
 * @throws StartError for an unusable hosts file
 */
export function machineOptions(
  {
    allowPrivateRemotes,
    allowFileRemotes,
    plainHttpHosts,
    sshKeyFile,
    egressHosts,
    egressPrivate,
    allowApiAgents,
  }: MachineConfig,
  { env, signalGroup }: Terminal,
  log: Log,
): Pick<
  RunnerOptions,
  "remotes" | "egress" | "sshKeyFile" | "apiAgents" | "version" | "signalGroup" | "path" | "log"
> {
  return {
    remotes: { allowPrivateAddresses: allowPrivateRemotes, allowFiles: allowFileRemotes, plainHttpHosts },
    egress: { named: namedHosts(egressHosts), privateNetworks: egressPrivate, env },
    sshKeyFile: sshKeyFile || undefined,
    apiAgents: allowApiAgents,
    version: version(),
    signalGroup,
    path: env.PATH ?? "",
    log,
  };
}

/** Reads the file of the hosts that isolated work may reach. @throws StartError for an unusable file */
export function namedHosts(file: string): NamedHosts {
  try {
    return readNamedHosts(file);
  } catch (error) {
    return rethrowRunnerError(error);
  }
}

/** Requires a git that runners can use. @throws StartError when there is none */
export async function requireGit({ env, signalGroup }: Terminal): Promise<void> {
  const programs = { run: createCommandRunner(signalGroup), path: env.PATH ?? "" };
  await requireGitVersion(programs).catch((error) => {
    throw error instanceof WorkFailure ? new StartError(error.message) : error;
  });
}

/** Returns the operator's size limit of the repository cache; undefined for no cache. */
export function repositoryCacheBytesOf({
  repositoryCache,
  repositoryCacheSize,
}: Pick<RunnerConfig, "repositoryCache" | "repositoryCacheSize">): number | undefined {
  return repositoryCache === "on" ? repositoryCacheSize * 2 ** 20 : undefined;
}

/**
 * Starts a runner in its locked state folder.
 *
 * @throws StartError when this machine cannot be a runner, or another runner uses the folder
 */
export async function startRunnerOnMachine(options: RunnerOptions): Promise<Runner> {
  const lock = lockStateDir(options.stateDir);
  try {
    const runner = await startRunner(options);
    const release = () => lock.release();
    runner.ended.then(release, release);
    return runner;
  } catch (error) {
    lock.release();
    return rethrowRunnerError(error);
  }
}

/** @throws StartError when another process holds the lock, or the folder is unusable */
function lockStateDir(stateDir: string): FolderLock {
  makeFolder(stateDir);
  let lock: FolderLock | undefined;
  try {
    lock = lockFile(join(stateDir, "runner.lock"));
  } catch (error) {
    throw new StartError(`the folder ${stateDir} cannot be used: ${(error as Error).message}`);
  }
  if (lock) return lock;
  throw new StartError(
    `another runner works in ${stateDir}: stop it, or give this one a folder of its own (--state-dir)`,
  );
}

/** Rethrows errors that the runner's operator can fix as StartError. */
export function rethrowRunnerError(error: unknown): never {
  throw error instanceof RunnerError ? new StartError(error.message) : error;
}

/** Returns the version of this program. */
function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return JSON.parse(text).version;
}
