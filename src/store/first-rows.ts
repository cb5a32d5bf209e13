import { type SelectQueryBuilder, sql } from "kysely";
import { SearchTooLong } from "../domain/error.ts";
import type { PagePosition } from "../domain/page.ts";
import { compareRow } from "./expressions.ts";
import { builderOf } from "./query-builder.ts";
import type { Schema } from "./schema.ts";
import type { Reader } from "./store.ts";

/** Number of rows that one query tests when a list takes too long as a whole: about 100 ms. */
const ROWS_PER_PIECE = 20_000;

/** The order of a list, and its start. */
export interface RowOrder {
  /** Columns such as `workflow.id`, all in one direction; no two rows are equal in all of them. */
  readonly columns: readonly `${string}.${string}`[];
  readonly direction: "asc" | "desc";
  /**
   * Values of the last row of the previous page; undefined for the first page. The query must not repeat them as a
   * condition: the engine would start each piece at the first of the two bounds, and read all rows between them again.
   */
  readonly after?: readonly unknown[] | undefined;
}

/** A query over rows of a table, possibly joined with others. */
type Rows<T extends keyof Schema, O> = SelectQueryBuilder<Schema, T, O>;

/**
 * Returns the first `limit` rows in their order. When the search takes too long, it is split into pieces of a limited
 * number of rows of `own`, each a search of its own: other searches run in between, and even rare matches are found.
 * @param own the rows that the list scans
 * @param fitting those of `own` that pass the filter
 * @param rowsAtOnce for tests
 */
export async function firstRows<T extends keyof Schema, O>(
  own: Rows<T, object>,
  fitting: Rows<T, O>,
  order: RowOrder,
  limit: number,
  rowsAtOnce = ROWS_PER_PIECE,
): Promise<O[]> {
  const whole = await unlessTooLong(() => firstOfFew(fitting, order, limit));
  if (whole) return whole;
  const rows: O[] = [];
  for await (const piece of pieces(own, fitting, order, rowsAtOnce)) {
    rows.push(
      ...(await ordered(piece, order)
        .limit(limit - rows.length)
        .execute()),
    );
    if (rows.length === limit) break;
  }
  return rows;
}

/** Returns the number of matching rows, counted up to `limit`, in the same way. */
export async function countRows<T extends keyof Schema>(
  db: Reader,
  own: Rows<T, object>,
  fitting: Rows<T, object>,
  order: RowOrder,
  limit: number,
  rowsAtOnce = ROWS_PER_PIECE,
): Promise<number> {
  const countOf = async (rows: Rows<T, object>, most: number) => {
    const found = rows.select(sql.lit(1).as("one")).limit(most).as("found");
    const { count } = await builderOf(db)
      .selectFrom(found)
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    return count;
  };
  const whole = await unlessTooLong(() => countOf(afterPosition(fitting, order), limit));
  if (whole !== undefined) return whole;
  let count = 0;
  for await (const piece of pieces(own, fitting, order, rowsAtOnce)) {
    count += await countOf(piece, limit - count);
    if (count === limit) break;
  }
  return count;
}

/** Tables with an index of their rows by organization, phase and id. */
type PhasedTable = "agent_execution" | "approval" | "environment" | "workflow_action" | "workflow_execution";

/**
 * Returns the first rows of one table by their ids, of any phase or of some. It scans the index once per phase: for
 * several phases at once, the engine would read all of their rows, or test row by row even where almost none matches.
 * @param phases empty for any
 */
export async function firstRowsInPhases<T extends PhasedTable, O extends { readonly id: string }>(
  table: T,
  own: Rows<T, O>,
  fitting: Rows<T, O>,
  phases: readonly number[],
  {
    direction,
    after,
  }: { readonly direction: RowOrder["direction"]; readonly after: PagePosition | undefined },
  limit: number,
): Promise<O[]> {
  const order: RowOrder = { columns: [`${table}.id`], direction, after: after && [after.id] };
  if (phases.length === 0) return firstRows(own, fitting, order, limit);
  const [id, inPhase] = [sql.ref<string>(`${table}.id`), sql.ref<number>(`${table}.phase`)];
  const ids: string[] = [];
  for (const phase of new Set(phases)) {
    const [all, some] = [own, fitting].map((rows) => rows.where(inPhase, "=", phase));
    if (!all || !some) continue;
    const rows = await firstRows(all, some.clearSelect().select(id.as("id")), order, limit);
    ids.push(...rows.map((row) => row.id));
  }
  ids.sort();
  if (direction === "desc") ids.reverse();
  return ordered(own.where(id, "in", ids.slice(0, limit)), order).execute();
}

/**
 * Returns the first rows in their order, of a list that is always short enough to be searched in one query, such as
 * the tokens of one user.
 */
export function firstOfFew<T extends keyof Schema, O>(
  rows: Rows<T, O>,
  order: RowOrder,
  limit: number,
): Promise<O[]> {
  return ordered(afterPosition(rows, order), order).limit(limit).execute();
}

async function unlessTooLong<R>(search: () => Promise<R>): Promise<R | undefined> {
  try {
    return await search();
  } catch (error) {
    if (error instanceof SearchTooLong) return undefined;
    throw error;
  }
}

/** Yields the matching rows, one piece after the other in their order. */
async function* pieces<T extends keyof Schema, O>(
  own: Rows<T, object>,
  fitting: Rows<T, O>,
  order: RowOrder,
  rowsAtOnce: number,
): AsyncGenerator<Rows<T, O>> {
  const { columns, direction } = order;
  const keys = columns.map((column, index) => sql.ref(column).as(`key${index}`));
  let { after } = order;
  for (;;) {
    const [rest, piece] = [
      afterPosition(own, { ...order, after }),
      afterPosition(fitting, { ...order, after }),
    ];
    const [end] = await ordered(rest.clearSelect().select(keys), order).offset(rowsAtOnce).limit(1).execute();
    if (!end) {
      yield piece;
      return;
    }
    const last = Object.values(end);
    yield piece.where(compareRow(columns, direction === "asc" ? "<=" : ">=", last));
    after = last;
  }
}

/** Restricts a query to the rows after the previous page. */
function afterPosition<T extends keyof Schema, O>(
  rows: Rows<T, O>,
  { columns, direction, after }: RowOrder,
): Rows<T, O> {
  return after ? rows.where(compareRow(columns, direction === "asc" ? ">" : "<", after)) : rows;
}

function ordered<T extends keyof Schema, O>(rows: Rows<T, O>, { columns, direction }: RowOrder): Rows<T, O> {
  return columns.reduce((query, column) => query.orderBy(sql.ref(column), direction), rows);
}
