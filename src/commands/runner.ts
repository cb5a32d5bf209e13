import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { getCACertificates } from "node:tls";
import { EXCHANGE_TOKEN_VARIABLE, type RunnerConfig } from "../config/config.ts";
import { createLog, type Log } from "../log.ts";
import type { RunnerOptions } from "../runner/process/start-runner.ts";
import { createHttpTransport } from "../runner/protocol/connection.ts";
import { hasState } from "../runner/protocol/runner-state.ts";
import type { RunningService, Terminal } from "./definitions/command-line.ts";
import { runnerStateDir } from "./folders/state-folder.ts";
import { checkSshKey } from "./preflight.ts";
import {
  chooseIsolationOnMachine,
  machineOptions,
  repositoryCacheBytesOf,
  rethrowRunnerError,
  startRunnerOnMachine,
} from "./runner-machine.ts";
import { StartError } from "./start-error.ts";

/**
 * Starts a runner for a server on another machine.
 *
 * @throws StartError when it cannot start
 */
export async function runRunner(config: RunnerConfig, terminal: Terminal): Promise<RunningService> {
  checkSshKey(config);
  const log = createLog(config.logLevel, terminal.writeLog);
  const folders = resolveFolders(config, terminal, log);
  const { stateDir, workDir } = folders;
  const hidden = [stateDir, workDir, config.exchangeTokenFile, config.sshKeyFile];
  const machine = machineOptions(config, terminal, log);
  const trusted = authorities(config);
  const options: RunnerOptions = {
    ...machine,
    egress: { ...machine.egress, authorities: trusted },
    transport: createHttpTransport(config.server, trusted),
    server: config.server,
    serverUrl: config.server,
    ...folders,
    slots: config.slots,
    agentSlots: config.agentSlots,
    repositoryCacheBytes: repositoryCacheBytesOf(config),
    exchangeToken: async () => exchangeToken(config, terminal),
    local: false,
    isolation: await chooseIsolationOnMachine(config, hidden, terminal, log),
    environmentClass: { displayName: "Folder", description: "A folder on the runner's machine" },
  };
  const runner = await startRunnerOnMachine(options);
  return { ended: runner.ended.catch(rethrowRunnerError), stop: runner.stop };
}

/** Returns the trusted certificate authorities; undefined for Node's own. @throws StartError for an unusable file */
function authorities({ caFile }: RunnerConfig): readonly string[] | undefined {
  if (caFile === "") return undefined;
  try {
    const pem = readFileSync(caFile, "utf8");
    // Node silently accepts a file without a certificate.
    new X509Certificate(pem);
    return [...getCACertificates("default"), pem];
  } catch (error) {
    throw new StartError(`--ca-file ${caFile} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

/** The default folder of earlier releases for the token and the workspaces. */
const EARLIER_STATE_DIR = "./runner";

/**
 * Returns the folders of a runner. If a setting names a folder, it holds everything. Otherwise everything is in the
 * user's state folder, except a token that an earlier release left in the working directory.
 */
function resolveFolders(
  { stateDir, server }: RunnerConfig,
  { env }: Terminal,
  log: Log,
): Pick<RunnerOptions, "stateDir" | "workDir"> {
  if (stateDir !== "") return { stateDir, workDir: stateDir };
  const workDir = runnerStateDir(env, server);
  if (hasState(workDir) || !hasState(EARLIER_STATE_DIR)) return { stateDir: workDir, workDir };
  log.warn(
    { folder: resolve(EARLIER_STATE_DIR), workspaces: workDir },
    "the runner's token is still in ./runner, where an earlier release put it: start the runner with --state-dir ./runner, which also finds the workspaces that it has now",
  );
  return { stateDir: EARLIER_STATE_DIR, workDir };
}

/** Reads the exchange token; undefined when there is none. */
function exchangeToken({ exchangeTokenFile }: RunnerConfig, { env }: Terminal): string | undefined {
  if (exchangeTokenFile === "") return env[EXCHANGE_TOKEN_VARIABLE]?.trim() || undefined;
  try {
    return readFileSync(exchangeTokenFile, "utf8").trim() || undefined;
  } catch (error) {
    throw new StartError(`--exchange-token-file cannot be read: ${(error as Error).message}`);
  }
}
