/** Columns of a row, as a migration writes them. */
export type FilledColumns = Readonly<Record<string, string | number | null>>;

/**
 * Rows that a migration rewrites in portions, each in a transaction of its own: no transaction is long, and if the
 * process is killed in between, the next start continues.
 */
export interface RowFill {
  readonly table: string;
  /** A column that is null in each row that is not yet rewritten, and set in all others. */
  readonly marker: string;
  /** Returns the values of the columns to set: always the same columns, including the marker. */
  readonly rewrite: (row: { readonly id: string; readonly body: string }) => FilledColumns;
}

/** Number of rows per portion: a few megabytes, and a fraction of a second. */
export const ROWS_PER_PORTION = 500;

/** Interval between two reports of progress. */
const REPORT_MS = 5_000;

/** Called with the number of rows of a table rewritten so far, and the total to rewrite. */
export type FillProgress = (table: string, done: number, total: number) => void;

/** Returns a function that counts rewritten rows, and reports them every few seconds and at the end. */
export function countingProgress({ table }: RowFill, total: number, report: FillProgress) {
  let [done, reportedAt] = [0, performance.now()];
  return (rows: number) => {
    done += rows;
    const isDue = performance.now() - reportedAt >= REPORT_MS;
    if (!isDue && done < total) return;
    reportedAt = performance.now();
    report(table, done, total);
  };
}
