import { nameDatabase } from "./data-config.ts";
import { onCluster } from "./postgres-store.ts";
import { type StartOptions, startServer, type TestServer, temporaryFolder } from "./server.ts";
import { until } from "./until.ts";

/** Settings of the servers over one database. */
export interface SeveralServersOptions {
  readonly args?: readonly string[];
  /** Returns the address by which a server reaches the database, by its index; by default the database's own. */
  readonly urlOf?: (index: number) => string;
}

/**
 * Starts servers over an empty database, with one data folder and key file. The first one leads the jobs, as it starts
 * before the others; all have the token of the first start.
 */
export async function startServers(
  url: string,
  count: number,
  { args = [], urlOf = () => url }: SeveralServersOptions = {},
): Promise<TestServer[]> {
  const dataDir = temporaryFolder();
  nameDatabase(dataDir, url);
  const start = (index: number): Promise<TestServer> =>
    startServer({ dataDir, args, env: { CHARTROOM_DATABASE_URL: urlOf(index) } } satisfies StartOptions);
  const first = await start(0);
  const token = await firstToken(first);
  await until(
    () => leaders(url),
    (found) => found.length === 1,
  );
  const others = await Promise.all(Array.from({ length: count - 1 }, (_, index) => start(index + 1)));
  return [first, ...others].map((server) => ({ ...server, token }));
}

/** Waits for the token that the first start of all prints on one of the servers. */
export async function firstToken(...servers: readonly TestServer[]): Promise<string> {
  const tokens = () => servers.flatMap((server) => server.output().match(/cr_pat_\w+(?=\n)/g) ?? []);
  const [token = ""] = await until(tokens, (found) => found.length > 0);
  return token;
}

/** Returns the engine's processes whose sessions hold the lock of the jobs: one, or none. */
export async function leaders(url: string): Promise<number[]> {
  const { rows } = await onCluster(
    url,
    `select pid from pg_locks where locktype = 'advisory' and objid = 4 and objsubid = 2 and granted
      and database = (select oid from pg_database where datname = current_database())`,
  );
  return rows.map(({ pid }) => pid);
}
