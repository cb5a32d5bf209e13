import pg from "pg";
import type { ReadOnlyStore } from "../store.ts";
import { builderOver, type DatabaseAddress, plainConfig } from "./connection.ts";
import { requireMigrated } from "./migrate.ts";
import { OneAtATimeClient } from "./one-at-a-time.ts";
import { requireUsable } from "./requirements.ts";
import { storageProblem } from "./storage-problem.ts";
import { rollback, tryInsert } from "./transaction.ts";

/**
 * Opens a consistent snapshot of a database for reading, without changing a row or migrating it.
 * @throws Error with a sentence for the operator when another release wrote it
 */
export async function openReadOnlyDatabase(address: DatabaseAddress): Promise<ReadOnlyStore> {
  const client = new OneAtATimeClient(plainConfig(address));
  await client.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    await requireMigrated(client);
  } catch (error) {
    await client.end();
    throw error;
  }
  return { reader: builderOver((query) => client.query(query), true), close: () => client.end() };
}

/** Returns whether a database has tables of Chartroom. */
export async function hasTables(address: DatabaseAddress): Promise<boolean> {
  const client = new pg.Client(plainConfig(address));
  client.on("error", () => {});
  await client.connect();
  try {
    return await isMade(client);
  } finally {
    await client.end();
  }
}

/** Facts about a database, as it reports them. */
export interface DatabaseReport {
  /** Release of the engine, such as `18.1`. */
  readonly release: string;
  readonly isReadOnly: boolean;
  /** Why it accepts no changes, though it is not read-only; undefined where it accepts them or has no tables yet. */
  readonly problem: string | undefined;
  /** Milliseconds by which its clock is ahead of this machine's; negative when it is behind. */
  readonly aheadMs: number;
}

/**
 * Connects to a database, reads its properties, and tries a change, which it rolls back.
 * @param connections maximum number of connections that a server opens
 * @throws Error with a sentence for the operator when it cannot be reached, or cannot hold the tables
 */
export async function inspectDatabase(
  address: DatabaseAddress,
  { connections, now }: { readonly connections: number; readonly now: () => number },
): Promise<DatabaseReport> {
  const client = new pg.Client(plainConfig(address));
  client.on("error", () => {});
  await client.connect();
  try {
    await requireUsable(client, connections);
    const before = now();
    const { rows } = await client.query<{ release: string; readonly: string; clock: string }>(
      `select current_setting('server_version') as release, current_setting('transaction_read_only') as readonly,
        (extract(epoch from clock_timestamp()) * 1000)::text as clock`,
    );
    const [row] = rows;
    const isReadOnly = row?.readonly === "on";
    return {
      release: row?.release ?? "",
      isReadOnly,
      problem: isReadOnly ? undefined : await changeProblem(client),
      // The rest of the elapsed time is the network round trip.
      aheadMs: Number(row?.clock) - (before + now()) / 2,
    };
  } finally {
    await client.end();
  }
}

async function isMade(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ known: boolean }>("select to_regclass('fact') is not null as known");
  return rows[0]?.known ?? false;
}

async function changeProblem(client: pg.Client): Promise<string | undefined> {
  if (!(await isMade(client))) return undefined;
  await client.query("begin");
  try {
    await tryInsert(client);
    return undefined;
  } catch (error) {
    return storageProblem(error) ?? (error as Error).message;
  } finally {
    await rollback(client);
  }
}
