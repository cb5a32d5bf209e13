import type { Kysely } from "kysely";
import type { Schema } from "./schema.ts";

/**
 * A row that every change of its kind moves on from where the one before left
 * it, such as the head of an organization's audit chain. Changes that share a
 * commit read it once and write it once; in between, the table holds what it
 * held before them.
 */
export interface HeldRow<K, V> {
  read(db: Kysely<Schema>, key: K): Promise<V>;
  write(db: Kysely<Schema>, key: K, value: V): Promise<unknown>;
}
