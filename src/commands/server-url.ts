import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Config, SETTINGS } from "../config/config.ts";

/** The settings that say where a server is reached, and where it keeps that. */
export type UrlConfig = Pick<Config, "dataDir" | "baseUrl" | "host" | "port" | "tlsCert">;

/** The file of the URL. It is kept once there is an organization. */
export const SERVER_URL_FILE = "server.url";

/** Returns whether a server has had an organization in a data folder. */
export const hasHadServer = (dataDir: string): boolean => existsSync(fileIn(dataDir));

const fileIn = (dataDir: string) => join(dataDir, SERVER_URL_FILE);

/** Keeps the URL of a running server in its data folder, for commands on the same machine; a full disk keeps none. */
export function keepServerUrl(dataDir: string, url: string): void {
  try {
    // The former one may be another user's.
    rmSync(fileIn(dataDir), { force: true });
    writeFileSync(fileIn(dataDir), `${url}\n`, { mode: 0o600 });
  } catch {
    // Commands then go by their flags.
  }
}

/**
 * Returns the URL of the server: the base URL of the settings, or what they say of its port, or the one that the server
 * of the data folder has kept when it last started.
 */
export function serverUrlOf({ dataDir, baseUrl, host, port, tlsCert }: UrlConfig): string {
  if (baseUrl !== "") return baseUrl;
  const isNamed = host !== SETTINGS.host.default || String(port) !== SETTINGS.port.default || tlsCert !== "";
  const kept = isNamed ? "" : readKept(dataDir);
  if (URL.canParse(kept)) return kept;
  return `${tlsCert ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function readKept(dataDir: string): string {
  try {
    return readFileSync(fileIn(dataDir), "utf8").trim();
  } catch {
    return "";
  }
}
