import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DataConfig } from "../../src/config/config.ts";
import { createDatabase, postgresUrl } from "./postgres-database.ts";

/** File of a test's data folder that names its database. */
const URL_FILE = "test-database-url";

/** Makes a data folder that of servers over a database, for all that a test does with the folder. */
export function nameDatabase(dataDir: string, url: string): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(join(dataDir, URL_FILE), url);
}

/** Returns the settings of the data in a folder: the folder itself, or the database that was created for it. */
export function dataConfigOf(dataDir: string): DataConfig {
  return {
    dataDir,
    keyFile: "",
    databaseUrl: databaseUrlOf(dataDir) ?? "",
    databasePasswordFile: "",
    databaseConnections: 3,
  };
}

/** Returns the environment by which a program finds the data of a folder. */
export function dataEnvironmentOf(dataDir: string | undefined): Readonly<Record<string, string>> {
  const url = dataDir === undefined ? undefined : databaseUrlOf(dataDir);
  return url === undefined ? {} : { CHARTROOM_DATABASE_URL: url, CHARTROOM_DATABASE_CONNECTIONS: "4" };
}

function databaseUrlOf(dataDir: string): string | undefined {
  const file = join(dataDir, URL_FILE);
  if (existsSync(file)) return readFileSync(file, "utf8");
  const server = postgresUrl();
  if (server === undefined) return undefined;
  const url = createDatabase(server);
  nameDatabase(dataDir, url);
  return url;
}
