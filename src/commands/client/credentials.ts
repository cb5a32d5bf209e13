import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import type { Environment } from "../../config/settings.ts";
import { makeFolder, writeProblem } from "../folders/file-access.ts";
import { StartError } from "../start-error.ts";

/** The access tokens of one user of the machine; the content of the credentials file. */
export interface Credentials {
  /** URL of the last login's server; empty for none. */
  readonly server: string;
  /** Tokens by server URL. */
  readonly tokens: Readonly<Record<string, string>>;
}

const NONE: Credentials = { server: "", tokens: {} };

/**
 * Returns the path of the credentials file: in `XDG_CONFIG_HOME`, or in `~/.config` if that is unset or relative (XDG
 * Base Directory Specification). It need not exist.
 */
export function credentialsFile({ XDG_CONFIG_HOME: configHome = "", HOME: home = "" }: Environment): string {
  const parent = isAbsolute(configHome) ? configHome : join(home || homedir(), ".config");
  return join(parent, "chartroom", "credentials.json");
}

/**
 * Reads the credentials file; returns no credentials if there is none.
 * @throws StartError for a file that others can read, or with other content
 */
export function readCredentials(file: string): Credentials {
  let text: string;
  try {
    if ((statSync(file).mode & 0o077) !== 0)
      throw new StartError(`${file} holds tokens and is open to other users: chmod 600 ${file}`);
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return NONE;
    if (error instanceof StartError) throw error;
    throw new StartError(`${file} cannot be read: ${(error as Error).message}`);
  }
  const credentials = parse(text);
  if (!credentials) throw new StartError(`${file} is no credentials file: remove it, then chartroom login`);
  return credentials;
}

function parse(text: string): Credentials | undefined {
  try {
    const { server, tokens } = JSON.parse(text) as Partial<Credentials>;
    const isWhole =
      typeof server === "string" &&
      typeof tokens === "object" &&
      tokens !== null &&
      Object.values(tokens).every((token) => typeof token === "string");
    return isWhole ? { server, tokens } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Replaces the credentials file atomically; only its owner can read it.
 * @throws StartError when it cannot be written
 */
export function writeCredentials(file: string, credentials: Credentials): void {
  makeFolder(dirname(file));
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  try {
    writeFileSync(draft, `${JSON.stringify(credentials, undefined, 2)}\n`, { mode: 0o600, flag: "wx" });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new StartError(`${file} cannot be written: ${writeProblem(error)}`);
  }
}
