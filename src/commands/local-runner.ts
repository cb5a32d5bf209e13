import { join } from "node:path";
import { type Config, keyFileOf } from "../config/config.ts";
import type { Keys } from "../keys.ts";
import type { Log } from "../log.ts";
import type { ChosenIsolation } from "../runner/isolation/choose-isolation.ts";
import type { Runner, RunnerOptions } from "../runner/process/start-runner.ts";
import type { Server } from "../server.ts";
import { createLocalExchangeToken } from "../services/runner/local-runner.ts";
import type { Store } from "../store/store.ts";
import type { Terminal } from "./definitions/command-line.ts";
import { serverWorkDir } from "./folders/state-folder.ts";
import {
  chooseIsolationOnMachine,
  machineOptions,
  namedHosts,
  repositoryCacheBytesOf,
  requireGit,
  startRunnerOnMachine,
} from "./runner-machine.ts";

/** The running server and its process. */
export interface LocalRunnerContext {
  readonly server: Server;
  /** The server's URL. */
  readonly url: string;
  readonly store: Store;
  readonly keys: Keys;
  readonly log: Log;
  readonly terminal: Terminal;
  readonly isolation: ChosenIsolation;
  /** The organization that the runner registers in; the first one by default. */
  readonly organizationId?: string | undefined;
}

/**
 * Checks what the server's own runner needs on this machine, except its isolation.
 *
 * @throws StartError when git or a host in the file of hosts cannot be used
 */
export async function checkLocalRunner({ egressHosts }: Config, terminal: Terminal): Promise<void> {
  namedHosts(egressHosts);
  await requireGit(terminal);
}

/**
 * Chooses the isolation for the work of the server's own runner.
 *
 * @throws StartError when no isolation that the operator accepts works on this machine
 */
export function chooseLocalIsolation(config: Config, terminal: Terminal, log: Log): Promise<ChosenIsolation> {
  const { dataDir, databasePasswordFile, tlsKey, sshKeyFile, otlpHeadersFile } = config;
  const workDir = workDirOf(config, terminal);
  const secret = [keyFileOf(config), databasePasswordFile, tlsKey, sshKeyFile, otlpHeadersFile];
  const hidden = [dataDir, ...secret, workDir];
  return chooseIsolationOnMachine(config, hidden, terminal, log);
}

function workDirOf({ localRunnerWorkDir, dataDir }: Config, { env }: Terminal): string {
  return localRunnerWorkDir || serverWorkDir(env, dataDir);
}

/**
 * Starts the runner on the server's own machine. It calls the server in memory and stops with it. The server
 * continues when the runner ends, for example because it was deleted.
 *
 * @throws StartError when this machine cannot be a runner
 */
export async function startLocalRunner(
  config: Config,
  { server, url, store, keys, log, terminal, isolation, organizationId }: LocalRunnerContext,
): Promise<Runner> {
  const options: RunnerOptions = {
    ...machineOptions(config, terminal, log),
    transport: server.transport,
    server: "in this process",
    serverUrl: url,
    stateDir: join(config.dataDir, "runner"),
    workDir: workDirOf(config, terminal),
    slots: config.localRunnerSlots,
    agentSlots: config.localRunnerAgentSlots,
    // Without isolation, commands run as the server's user and could read what was cloned for other work.
    repositoryCacheBytes: isolation.name === "none" ? undefined : repositoryCacheBytesOf(config),
    isolation,
    exchangeToken: () => createLocalExchangeToken(store, keys, organizationId),
    local: true,
    environmentClass: { displayName: "Local", description: "A folder on the server's machine" },
  };
  const runner = await startRunnerOnMachine(options);
  runner.ended.catch((error) => log.error({ problem: error.message }, "the local runner has ended"));
  return runner;
}
