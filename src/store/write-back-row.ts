import type { Kysely } from "kysely";
import type { Schema } from "./schema.ts";

/**
 * A row that every change of its kind continues from its last value, such as the head of an
 * organization's audit chain. The first change of a commit reads it, and the commit writes it once;
 * in between, the table has the value before the commit, so nothing else may read those columns in
 * a write. A row that cannot be written fails the whole commit.
 *
 * Keys are compared as Map does, and values are replaced, never changed in place.
 */
export interface WriteBackRow<K, V> {
  read(db: Kysely<Schema>, key: K): Promise<V>;
  write(db: Kysely<Schema>, key: K, value: V): Promise<unknown>;
}
