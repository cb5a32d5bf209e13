import type Database from "better-sqlite3";
import { countingProgress, type FillProgress, ROWS_PER_PORTION, type RowFill } from "../row-fill.ts";

/** Rewrites the rows of a table that are still to be, in portions. Two processes may do it at once. */
export function fillRows(raw: Database.Database, fill: RowFill, report: FillProgress): void {
  const { table, marker, rewrite } = fill;
  const total = raw
    .prepare<[], number>(`select count(*) from ${table} where ${marker} is null`)
    .pluck()
    .get();
  if (!total) return;
  const count = countingProgress(fill, total, report);
  const portion = raw.prepare<[string, number], { id: string; body: string }>(
    `select id, body from ${table} where id > ? and ${marker} is null order by id limit ?`,
  );
  let update: Database.Statement<unknown[]> | undefined;
  const rewritePortion = raw.transaction((after: string): string | undefined => {
    const rows = portion.all(after, ROWS_PER_PORTION);
    if (rows.length === 0) return undefined;
    for (const row of rows) {
      const columns = rewrite(row);
      const set = Object.keys(columns).map((column) => `${column} = ?`);
      update ??= raw.prepare(`update ${table} set ${set.join(", ")} where id = ?`);
      update.run(...Object.values(columns), row.id);
    }
    count(rows.length);
    return rows.at(-1)?.id;
  });
  for (let last: string | undefined = ""; last !== undefined; ) last = rewritePortion.immediate(last);
}
