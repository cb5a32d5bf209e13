import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, join } from "node:path";
import type { Environment } from "../../config/settings.ts";
import { stateFolder } from "../../config/state-folder.ts";

/**
 * Returns the workspace folder of a server's local runner. It differs for each data folder, so that servers of one
 * user do not share it.
 *
 * @param dataDir must exist
 */
export function serverWorkDir(env: Environment, dataDir: string): string {
  const path = realpathSync(dataDir);
  return join(stateFolder(env), "servers", `${basename(path)}-${digest(path)}`);
}

/** Returns the state folder of a runner for a server, unless a setting names one. */
export function runnerStateDir(env: Environment, server: string): string {
  return join(stateFolder(env), "runners", `${new URL(server).hostname}-${digest(server)}`);
}

/** Returns a suffix that distinguishes folders with the same readable name. */
function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
