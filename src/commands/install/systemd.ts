import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { StartError } from "../start-error.ts";
import { type InstalledFile, installedFiles, type UnitSettings } from "./units.ts";

/** The options of `chartroom install systemd`. */
export interface InstallChoice {
  /** The folder to use as `/`. */
  readonly root: string;
  /** Prints the files instead of writing them. */
  readonly print: boolean;
  /** Removes the written files that nobody has changed. */
  readonly remove: boolean;
  /** Also replaces changed files. */
  readonly force: boolean;
}

/**
 * Writes the units of the server and the runner, or removes them.
 *
 * @returns the report for the person at the terminal
 * @throws StartError when a path cannot be written in a unit, a file was changed, or the folder cannot be written
 */
export function installSystemd(settings: UnitSettings, choice: InstallChoice): string {
  requireUsable(settings);
  const files = installedFiles(settings);
  if (choice.print) return files.map(({ path, text }) => `# /${path}\n${text}`).join("\n");
  try {
    return choice.remove ? remove(files, choice) : install(files, choice);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new StartError(
      `the units cannot be written (${message}): run this as root, or see them with --print`,
      { cause: error },
    );
  }
}

function requireUsable({ node, program, credentials, server }: UnitSettings): void {
  for (const [flag, path] of [
    ["--node", node],
    ["--program", program],
    ["--key-file", credentials.keyFile],
    ["--database-password-file", credentials.databasePasswordFile],
    ["--exchange-token-file", credentials.exchangeTokenFile],
  ] as const) {
    if (path === "") continue;
    if (!isAbsolute(path)) throw new StartError(`${flag} ${path} must be an absolute path`);
    // A line break would start another setting of the unit.
    if (/\p{Cc}/u.test(path)) throw new StartError(`${flag} must be a path without control characters`);
  }
  for (const path of Object.values(credentials)) {
    if (/[\s:%]/.test(path)) throw new StartError(`${path} must be a path without blanks, ":" and "%"`);
  }
  if (!URL.canParse(server) || /[\s\p{Cc}]/u.test(server))
    throw new StartError(`--server must be the URL of the server, not ${JSON.stringify(server)}`);
}

function install(files: readonly InstalledFile[], { root, force }: InstallChoice): string {
  const changed = files.filter((file) => !file.isOwnersAfterwards && stateOf(root, file) === "changed");
  if (changed.length > 0 && !force) {
    const names = changed.map(({ path }) => `  ${placeOf(root, path)}\n`).join("");
    throw new StartError(
      `these files exist with other content; --force replaces them, and keeps drop-ins (systemctl edit):\n${names}`,
    );
  }
  const lines = files.map((file) => {
    const state = stateOf(root, file);
    const path = placeOf(root, file.path);
    if (state === "same" || (state === "changed" && file.isOwnersAfterwards)) return `kept     ${path}`;
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    writeFileSync(path, file.text, { mode: file.mode });
    chmodSync(path, file.mode);
    return `${state === "absent" ? "wrote    " : "replaced "}${path}`;
  });
  return `${lines.join("\n")}\n${NEXT}`;
}

function remove(files: readonly InstalledFile[], { root, force }: InstallChoice): string {
  const lines = files.flatMap((file) => {
    const state = stateOf(root, file);
    const path = placeOf(root, file.path);
    if (state === "absent") return [];
    if (state === "changed" && !force) return [`left     ${path} (changed; --force removes it too)`];
    rmSync(path);
    return [`removed  ${path}`];
  });
  return `${lines.join("\n")}${lines.length > 0 ? "\n" : "There was nothing to remove.\n"}${REMOVED}`;
}

function stateOf(root: string, { path, text }: InstalledFile): "absent" | "same" | "changed" {
  const place = placeOf(root, path);
  if (!existsSync(place)) return "absent";
  return lstatSync(place).isFile() && readFileSync(place, "utf8") === text ? "same" : "changed";
}

function placeOf(root: string, path: string): string {
  return join(resolve(root), path);
}

const NEXT = `
Next, as root:

  systemd-sysusers
  systemctl daemon-reload
  systemctl enable --now chartroom

The administrator's first access token is then in /var/lib/chartroom/first-token.
A runner on this machine: make one (page "Runners" of the console, or chartroom runner create NAME), put its exchange
token into /etc/chartroom/exchange-token, and

  systemctl enable --now chartroom-runner

Copies of the data, each restored and verified, go to /var/lib/chartroom-backups once you say

  systemctl enable --now chartroom-backup
`;

const REMOVED = `
Next, as root: systemctl daemon-reload. The data stays in /var/lib/chartroom and /var/lib/chartroom-runner, copies of
it in /var/lib/chartroom-backups, and the users chartroom and chartroom-runner stay with it.
`;
