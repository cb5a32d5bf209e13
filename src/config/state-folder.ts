import { existsSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Environment } from "./settings.ts";

/**
 * Returns the folder of a user's Chartroom state, which may not exist yet: in
 * `XDG_STATE_HOME`, or in `~/.local/state` when that is unset or relative, as the
 * XDG Base Directory Specification requires.
 */
export function stateFolder({ XDG_STATE_HOME: stateHome = "", HOME: home = "" }: Environment): string {
  const parent = isAbsolute(stateHome) ? stateHome : join(home || homedir(), ".local", "state");
  return join(parent, "chartroom");
}

/** True in a checkout of the sources, false in an installed release. */
const IS_CHECKOUT = existsSync(join(import.meta.dirname, "../../.git"));

/** Returns the data folder that is used when no setting names one. */
export function defaultDataDir(
  env: Environment,
  { isCheckout = IS_CHECKOUT, isRoot = isRootUser() } = {},
): string {
  if (isCheckout) return "./data";
  return isRoot ? "/var/lib/chartroom" : join(stateFolder(env), "data");
}

function isRootUser(): boolean {
  try {
    return userInfo().uid === 0;
  } catch {
    // The machine has no user database, as in a minimal container.
    return false;
  }
}
