import { readFileSync } from "node:fs";
import type { RunnerConfig } from "../config/config.ts";
import type { Log } from "../log.ts";
import { type Runner, type RunnerOptions, startRunner } from "../runner/process/start-runner.ts";
import { RunnerError } from "../runner/protocol/runner-error.ts";
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
 * Starts a runner, and warns if it runs as root.
 *
 * @throws StartError when this machine cannot be a runner
 */
export function startRunnerOnMachine(
  options: RunnerOptions,
  { isRoot }: Pick<Terminal, "isRoot">,
): Promise<Runner> {
  if (isRoot) options.log.warn({}, AS_ROOT);
  return startRunner(options).catch(rethrowRunnerError);
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
