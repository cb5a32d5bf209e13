/** One row of any table, by column. */
export type AnyRow = Readonly<Record<string, unknown>>;

/** A consistent snapshot of a whole database, to be copied. */
export interface RowSource {
  /** Returns the columns of each table that holds rows of the program. */
  tables(): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Yields the rows of a table in batches. */
  rows(table: string, columns: readonly string[]): AsyncIterable<readonly AnyRow[]>;
}

/** An empty database that a copy fills in one transaction. */
export interface RowSink {
  tables(): Promise<ReadonlyMap<string, readonly string[]>>;
  insert(table: string, columns: readonly string[], rows: readonly AnyRow[]): Promise<void>;
  count(table: string): Promise<number>;
}

/** Called with the number of rows of a table copied so far; at least once for each table. */
export type CopyProgress = (table: string, rows: number) => void;

/** Columns that hold row numbers of an index of one engine; the other engine does not use them. */
const ENGINE_COLUMNS: ReadonlySet<string> = new Set(["search_row"]);

/**
 * Copies every row unchanged, table by table.
 * @returns the number of rows of each table
 * @throws Error when the target lacks a table or a column of the source
 */
export async function copyRows(
  source: RowSource,
  target: RowSink,
  onProgress: CopyProgress,
): Promise<ReadonlyMap<string, number>> {
  const [from, to] = [await source.tables(), await target.tables()];
  const counts = new Map<string, number>();
  for (const [table, all] of from) {
    const columns = all.filter((column) => !ENGINE_COLUMNS.has(column));
    const missing = columns.find((column) => !to.get(table)?.includes(column));
    if (missing !== undefined) throw new Error(`the target has no column ${table}.${missing}`);
    let count = 0;
    for await (const rows of source.rows(table, columns)) {
      await target.insert(table, columns, rows);
      count += rows.length;
      onProgress(table, count);
    }
    if (count === 0) onProgress(table, 0);
    counts.set(table, count);
  }
  return counts;
}
