import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Config, SETTINGS } from "../config/config.ts";

/** The settings that determine a server's URL and where it is stored. */
export type UrlConfig = Pick<Config, "dataDir" | "baseUrl" | "host" | "port" | "tlsCert">;

/** The file with the URL. It is written once there is an organization. */
export const SERVER_URL_FILE = "server.url";

/** Returns whether a server has had an organization in a data folder. */
export const hasHadServer = (dataDir: string): boolean => existsSync(fileIn(dataDir));

const fileIn = (dataDir: string) => join(dataDir, SERVER_URL_FILE);

/** Stores a running server's URL in its data folder for commands on the same machine; does nothing on a full disk. */
export function keepServerUrl(dataDir: string, url: string): void {
  try {
    // The previous file may belong to another user.
    rmSync(fileIn(dataDir), { force: true });
    writeFileSync(fileIn(dataDir), `${url}\n`, { mode: 0o600 });
  } catch {
    // Commands then use their flags.
  }
}

/**
 * Returns the server's URL: the base URL in the settings, the URL that their port gives, or the URL stored at the
 * last start on the data folder.
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
