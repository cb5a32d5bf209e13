import { readFileSync } from "node:fs";
import { EXCHANGE_TOKEN_VARIABLE, type RunnerConfig } from "../config.ts";
import { createLog } from "../log.ts";
import { connectTo } from "../runner/connection.ts";
import { checkSshKey } from "./check-surroundings.ts";
import type { Running, Terminal } from "./command-line.ts";
import { machineOptions, startedRunner, toStartError } from "./runner-machine.ts";
import { StartError } from "./start-error.ts";

/**
 * Starts a runner that works for a server elsewhere.
 *
 * @throws StartError when it cannot start
 */
export async function runRunner(config: RunnerConfig, terminal: Terminal): Promise<Running> {
  checkSshKey(config);
  const runner = await startedRunner({
    ...machineOptions(config, terminal, createLog(config.logLevel)),
    transport: connectTo(config.server),
    server: config.server,
    serverUrl: config.server,
    stateDir: config.stateDir,
    slots: config.slots,
    agentSlots: config.agentSlots,
    exchangeToken: async () => exchangeToken(config, terminal),
    local: false,
    environmentClass: { displayName: "Folder", description: "A folder on the runner's machine" },
  });
  return { ended: runner.ended.catch(toStartError), stop: runner.stop };
}

/** Undefined when there is none. */
function exchangeToken({ exchangeTokenFile }: RunnerConfig, { env }: Terminal): string | undefined {
  if (exchangeTokenFile === "") return env[EXCHANGE_TOKEN_VARIABLE]?.trim() || undefined;
  try {
    return readFileSync(exchangeTokenFile, "utf8").trim() || undefined;
  } catch (error) {
    throw new StartError(`--exchange-token-file cannot be read: ${(error as Error).message}`);
  }
}
