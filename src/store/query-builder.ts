import type { Kysely } from "kysely";
import type { Schema } from "./schema.ts";
import type { Reader } from "./store.ts";

/**
 * Returns the query builder behind a reader. Only store/ imports this, as `npm run check` ensures, so that
 * nothing else can build a query.
 */
export function builderOf(reader: Reader): Kysely<Schema> {
  return reader as unknown as Kysely<Schema>;
}
