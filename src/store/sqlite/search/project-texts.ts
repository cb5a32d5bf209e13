import { type Expression, type SqlBool, sql } from "kysely";
import { prepared } from "../../prepared.ts";
import type { Reader, Scope, WriteTransaction } from "../../store.ts";
import type { WriteBackRow } from "../../write-back-row.ts";
import { searchTables } from "./search-tables.ts";
import { searchTrigrams } from "./trigrams.ts";

/**
 * Number of rows that an organization may have in the index of project texts, including unused
 * ones. One with more would reach into the range of the next, which costs time but does no harm:
 * every candidate is tested.
 */
export const RANGE_ROWS = 2 ** 30;

const selectLastRow = prepared<Scope, { last_row: number }>((db, { organizationId }) =>
  searchTables(db)
    .selectFrom("project_search_range")
    .select("last_row")
    .where("organization_id", "=", organizationId),
);

const setLastRow = prepared<Scope & { lastRow: number }, unknown>((db, { organizationId, lastRow }) =>
  searchTables(db)
    .updateTable("project_search_range")
    .set({ last_row: lastRow })
    .where("organization_id", "=", organizationId),
);

/**
 * The last row that an organization has used; 0 until {@link createRange} has created a range to
 * store it in.
 */
const LAST_ROW: WriteBackRow<string, number> = {
  read: async (db, organizationId) => (await selectLastRow(db, { organizationId }))[0]?.last_row ?? 0,
  write: (db, organizationId, lastRow) => setLastRow(db, { organizationId, lastRow }),
};

const insertTrigrams = prepared<{ rowid: number; grams: string }, unknown>((db, row) =>
  searchTables(db).insertInto("project_search").values({ rowid: row.rowid, grams: row.grams }),
);

/**
 * Adds a project's search text to the index and returns the number of its row, which the project
 * then names. The row of a former text stays unused: the index can remove a row only by its text,
 * and audit rows of the same change take more space.
 */
export async function indexSearchText(
  tx: Pick<WriteTransaction, "db" | "readWriteBack" | "setWriteBack">,
  enter: (row: number, text: string) => void,
  scope: Scope,
  text: string,
): Promise<number> {
  const { organizationId } = scope;
  const last = await tx.readWriteBack(LAST_ROW, organizationId);
  const row = last === 0 ? await createRange(tx.db, scope) : last + 1;
  tx.setWriteBack(LAST_ROW, organizationId, row);
  enter(row, text);
  return row;
}

/** Writes a text of {@link indexSearchText}, at the end of a transaction. */
export async function insertSearchText(db: Reader, row: number, text: string): Promise<void> {
  await insertTrigrams(db, { rowid: row, grams: searchTrigrams(text) });
}

/** Returns the first row of an organization that has had no project so far. */
async function createRange(db: Reader, scope: Scope): Promise<number> {
  const { last } = await searchTables(db)
    .selectFrom("project_search_range")
    .select((eb) => eb.fn.max("number").as("last"))
    .executeTakeFirstOrThrow();
  const number = (last ?? 0) + 1;
  const last_row = number * RANGE_ROWS + 1;
  await searchTables(db)
    .insertInto("project_search_range")
    .values({ organization_id: scope.organizationId, number, last_row })
    .execute();
  return last_row;
}

const selectRange = prepared<Scope, { number: number }>((db, { organizationId }) =>
  searchTables(db)
    .selectFrom("project_search_range")
    .select("number")
    .where("organization_id", "=", organizationId),
);

/**
 * Returns the first and the last row that an organization can have; undefined when it never had a
 * project.
 */
export async function findSearchRange(db: Reader, scope: Scope): Promise<RowRange | undefined> {
  const [row] = await selectRange(db, { organizationId: scope.organizationId });
  return row && [row.number * RANGE_ROWS, (row.number + 1) * RANGE_ROWS - 1];
}

/** A range of rows of project_search by their numbers, both ends inclusive. */
export type RowRange = readonly [first: number, last: number];

/**
 * Returns the condition that a row of project_search is in a range and among the results of a
 * trigram query.
 */
export function hasTrigrams(query: string, [first, last]: RowRange): Expression<SqlBool> {
  // The driver binds numbers as reals, which the index does not accept as bounds.
  return sql<SqlBool>`project_search match ${query}
    and project_search.rowid between cast(${first} as integer) and cast(${last} as integer)`;
}
