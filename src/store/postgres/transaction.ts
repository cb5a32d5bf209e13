import { randomBytes, randomUUID } from "node:crypto";
import type pg from "pg";

/** Length of a text for which the tables have no free place, in characters: where the disk is full, it is not taken. */
const PROBE_LENGTH = 262_144;

/** Writes as much as a large write, takes it back, and writes a row that stays as it is. @throws the engine's error */
export async function tryChange(client: pg.PoolClient): Promise<void> {
  await client.query("savepoint probe");
  // Random, since the engine compresses.
  const value = randomBytes(PROBE_LENGTH / 2).toString("hex");
  await client.query("insert into fact (name, value) values ($1, $2)", [randomUUID(), value]);
  await client.query("rollback to savepoint probe");
  await client.query("update installation set sequence = sequence");
}

/** Ends a transaction that failed. @returns whether the connection can be used again */
export async function rollback(client: pg.PoolClient): Promise<boolean> {
  try {
    await client.query("rollback");
    return true;
  } catch {
    return false;
  }
}
