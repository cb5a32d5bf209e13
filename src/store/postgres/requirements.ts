import type pg from "pg";
import { READ_ONLY, storageProblem } from "./storage-problem.ts";

/** The oldest release of the engine, as it numbers them. */
const MIN_VERSION = 150_000;

/**
 * Requires that the database can hold the tables: a release of the engine that is new enough, UTF-8, and the extension
 * pg_trgm, which is created where the user may.
 * @throws Error with a sentence that says what to do
 */
export async function requireUsable(client: pg.ClientBase): Promise<void> {
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
  await requireTrigrams(client);
}

async function requireTrigrams(client: pg.ClientBase): Promise<void> {
  try {
    await client.query("create extension if not exists pg_trgm");
  } catch (error) {
    if (storageProblem(error) === READ_ONLY) throw error;
    throw new Error(
      "the database lacks the extension pg_trgm: install the engine's contrib package and run " +
        `"create extension pg_trgm" in it as a user who may (${(error as Error).message})`,
      { cause: error },
    );
  }
}
