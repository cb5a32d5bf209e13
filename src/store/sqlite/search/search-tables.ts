import type { Kysely } from "kysely";
import { builderOf } from "../../query-builder.ts";
import type { Schema } from "../../schema.ts";
import type { Reader } from "../../store.ts";

/** Rows of the index of project texts, which other engines do not have. */
type SearchTables = {
  /** The full-text index of search texts: it returns row numbers, not texts. */
  project_search: {
    rowid: number;
    /** Trigrams of the search text, see searchTrigrams. */
    grams: string;
  };
  /** The ranges of rows in project_search by organization. */
  project_search_range: {
    organization_id: string;
    number: number;
    /** Cached during a commit, see WriteBackRow. */
    last_row: number;
  };
};

/** Returns the query builder behind a reader, with the tables of the index. */
export function searchTables(db: Reader): Kysely<Schema & SearchTables> {
  return builderOf(db).withTables<SearchTables>();
}
