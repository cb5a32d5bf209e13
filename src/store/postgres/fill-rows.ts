import type pg from "pg";
import { countingProgress, type FillProgress, ROWS_PER_PORTION, type RowFill } from "../row-fill.ts";

type EarlierRow = Parameters<RowFill["rewrite"]>[0];

/** Rewrites the rows of a table that are still to be, in portions, while no server uses it. */
export async function fillRows(client: pg.ClientBase, fill: RowFill, report: FillProgress): Promise<void> {
  const { table, marker, rewrite } = fill;
  const counted = await client.query<{ total: string }>(
    `select count(*) as total from ${table} where ${marker} is null`,
  );
  const count = countingProgress(fill, Number(counted.rows[0]?.total), report);
  for (let last: string | undefined = ""; last !== undefined; ) {
    const { rows }: pg.QueryResult<EarlierRow> = await client.query<EarlierRow>(
      `select id, body from ${table} where id > $1 and ${marker} is null order by id limit $2`,
      [last, ROWS_PER_PORTION],
    );
    last = rows.at(-1)?.id;
    if (last === undefined) return;
    const columns = Object.keys(rewrite(rows[0] as EarlierRow));
    await client.query(
      `update ${table} set ${columns.map((column) => `${column} = filled.${column}`).join(", ")}
      from json_populate_recordset(null::${table}, $1) as filled where ${table}.id = filled.id`,
      [JSON.stringify(rows.map((row) => ({ id: row.id, ...rewrite(row) })))],
    );
    count(rows.length);
  }
}
