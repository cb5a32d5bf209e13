import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DataConfig } from "../../src/config/config.ts";
import { createDatabase, postgresUrl } from "./postgres-database.ts";

/** File of a test's data folder that names its database, in a run on PostgreSQL. */
const URL_FILE = "test-database-url";

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
  const server = postgresUrl();
  if (server === undefined) return undefined;
  const file = join(dataDir, URL_FILE);
  if (existsSync(file)) return readFileSync(file, "utf8");
  const url = createDatabase(server);
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(file, url);
  return url;
}
