import { randomUUID } from "node:crypto";
import type pg from "pg";

/** The oldest release of the engine, as it numbers them. */
const MIN_VERSION = 150_000;

/**
 * Requires that the database can hold the tables: a recent enough release of the engine, UTF-8, and as many
 * connections as the process opens.
 * @param client without settings that older releases do not know
 * @param connections maximum number that the process opens
 * @throws Error with a sentence that says what to do
 */
export async function requireUsable(client: pg.ClientBase, connections = 1): Promise<void> {
  const { rows } = await client.query<{ version: string; release: string; encoding: string }>(
    `select current_setting('server_version_num') as version, current_setting('server_version') as release,
      current_setting('server_encoding') as encoding`,
  );
  const [{ version, release, encoding } = { version: "0", release: "", encoding: "" }] = rows;
  if (Number(version) < MIN_VERSION)
    throw new Error(
      `the database server is PostgreSQL ${release}: Chartroom needs 15 or newer; upgrade it, or name another by --database-url`,
    );
  if (encoding !== "UTF8")
    throw new Error(
      `the database is encoded as ${encoding}: create one with "create database chartroom encoding 'UTF8' template template0"`,
    );
  const most = await maxConnections(client);
  if (most < connections)
    throw new Error(
      `the database takes ${most} connections of this user, and this server opens up to ${connections}: ` +
        "raise max_connections, or the limit of the user or the database, or lower --database-connections",
    );
}

/** Returns the maximum number of connections that the engine allows the user. */
async function maxConnections(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ most: number }>(
    `select least(
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0),
      (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
      (select nullif(datconnlimit, -1) from pg_database where datname = current_database())
    ) as most`,
  );
  return rows[0]?.most ?? 0;
}

/** Returns the settings of a connection plus one that no other has, for {@link requireSettings}. */
export function markedSettings(options: string | undefined): {
  readonly options: string;
  readonly mark: string;
} {
  const mark = randomUUID();
  return { options: `${options} -c chartroom.mark=${mark}`, mark };
}

/**
 * Requires that a connection has the settings that it was opened with. Poolers drop them, so nothing would end a
 * vanished connection or a query that takes too long.
 * @throws Error with a sentence that says what to do
 */
export async function requireSettings(client: pg.ClientBase, mark: string): Promise<void> {
  const { rows } = await client.query<{ mark: string | null }>(
    "select current_setting('chartroom.mark', true) as mark",
  );
  if (rows[0]?.mark === mark) return;
  throw new Error(
    "a pooler between this server and the database drops the settings of connections: " +
      "name the database itself in --database-url",
  );
}
