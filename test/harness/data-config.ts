import { cpSync } from "node:fs";
import { resolve } from "node:path";
import type { DataConfig } from "../../src/config/config.ts";
import { createDatabase, dropDatabases, nameOf, postgresUrl } from "./postgres-database.ts";

/** The addresses of the databases of data folders by the folder's path. */
const databases = new Map<string, string>();
/** Those of them that were created for their folders. */
const created = new Set<string>();

/** Makes a data folder that of servers over a database, for all that a test does with the folder. */
export function nameDatabase(dataDir: string, url: string): void {
  databases.set(resolve(dataDir), url);
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

/**
 * Returns what a command says that needs all servers stopped, while one runs over the data of a folder.
 * @param what it does, such as "keys are rotated"
 */
export function refusedWhileServerRuns(dataDir: string, what: string): string {
  const [used, stopped] =
    databaseUrlOf(dataDir) === undefined ? [`data folder ${dataDir}`, "it"] : ["database", "them"];
  return `a server or another command uses the ${used}: ${what} while no server runs, so stop ${stopped} first`;
}

/** Returns the address of a folder's database, in a run on PostgreSQL created for it; undefined for SQLite. */
export function databaseUrlOf(dataDir: string): string | undefined {
  const known = databases.get(resolve(dataDir));
  if (known !== undefined) return known;
  const server = postgresUrl();
  return server === undefined ? undefined : createFor(dataDir, server);
}

/** Copies the data that a stopped server has left, with its key file, to a folder that does not exist. */
export function copyData(from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  const server = postgresUrl();
  const source = databaseUrlOf(from);
  if (server !== undefined && source !== undefined) createFor(to, server, nameOf(source));
}

/** Removes the database of a folder that is gone; those of a folder that has none stay. */
export async function dropData(dataDir: string): Promise<void> {
  const url = databases.get(resolve(dataDir));
  if (url === undefined) return;
  databases.delete(resolve(dataDir));
  if (created.delete(url)) await dropDatabases([url]);
}

/** Removes the databases of all folders. */
export async function dropAllData(): Promise<void> {
  const urls = [...created];
  databases.clear();
  created.clear();
  await dropDatabases(urls);
}

/** Makes an empty database that of a folder, in a run on PostgreSQL. @returns its address */
export function emptyDatabaseFor(dataDir: string): string {
  return createFor(dataDir, postgresUrl() ?? "", "template0");
}

function createFor(dataDir: string, server: string, template?: string): string {
  const url = createDatabase(server, template);
  created.add(url);
  nameDatabase(dataDir, url);
  return url;
}
