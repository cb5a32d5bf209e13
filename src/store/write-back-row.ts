import type { Reader } from "./store.ts";

/**
 * A row that every change of its kind continues from its last value, such as the head of an
 * organization's audit chain. The first change of a commit reads it, and the commit writes it once;
 * in between, the table has the value before the commit, so nothing else may read those columns in
 * a write. A row that cannot be written fails the whole commit.
 *
 * Keys are compared as Map does, and values are replaced, never changed in place.
 */
export interface WriteBackRow<K, V> {
  read(db: Reader, key: K): Promise<V>;
  write(db: Reader, key: K, value: V): Promise<unknown>;
}
