import pg from "pg";
import type { AnyRow, RowSink, RowSource } from "../copy-rows.ts";
import { type DatabaseAddress, plainConfig } from "./connection.ts";
import { holdPresence, type Presence } from "./locks.ts";
import { migrate, requireMigrated } from "./migrate.ts";
import { requireUsable } from "./requirements.ts";
import { toStored } from "./text.ts";

/** Number of rows per batch that is read and passed on. */
const ROWS_PER_BATCH = 500;

/** Maximum number of values that one statement can bind. */
const MAX_VALUES = 60_000;

/**
 * Opens a consistent snapshot of a database for reading, either while servers run or alone.
 * @throws PresenceRefused; Error when another release wrote it
 */
export async function readDatabase<T>(
  address: DatabaseAddress,
  use: (source: RowSource) => Promise<T>,
  presence: Presence = "alongside",
): Promise<T> {
  return withClient(address, async (client) => {
    await holdPresence(client, presence);
    await requireMigrated(client);
    await client.query("begin isolation level repeatable read read only");
    const result = await use({
      tables: () => tablesOf(client),
      async *rows(table, columns) {
        const names = columns.map(quoted).join(", ");
        await client.query(`declare copied cursor for select ${names} from ${quoted(table)}`);
        for (;;) {
          const { rows } = await client.query<AnyRow>(`fetch ${ROWS_PER_BATCH} from copied`);
          if (rows.length === 0) break;
          yield rows;
        }
        await client.query("close copied");
      },
    });
    await client.query("commit");
    return result;
  });
}

/**
 * Fills an empty database in one transaction, while no server uses it.
 * @throws PresenceRefused; Error when the database is not empty
 */
export async function fillDatabase<T>(
  address: DatabaseAddress,
  fill: (target: RowSink) => Promise<T>,
): Promise<T> {
  return withClient(address, async (client) => {
    await requireUsable(client);
    await holdPresence(client, "alone");
    await migrate(client);
    await client.query("begin");
    const { rows: found } = await client.query(
      "select from organization union all select from audit_log limit 1",
    );
    if (found.length > 0) throw new Error("the database holds data already: name one that is empty");
    const tables = await tablesOf(client);
    // The triggers reject changed audit rows and count stored bytes, which the copied rows already contain.
    for (const table of tables.keys())
      await client.query(`alter table ${quoted(table)} disable trigger user`);
    await client.query("delete from installation");
    await client.query("set constraints all deferred");
    const result = await fill({
      tables: async () => tables,
      async insert(table, columns, rows) {
        const most = Math.floor(MAX_VALUES / columns.length);
        for (let start = 0; start < rows.length; start += most)
          await insertRows(client, table, columns, rows.slice(start, start + most));
      },
      async count(table) {
        const { rows } = await client.query<{ count: number }>(`select count(*) from ${quoted(table)}`);
        return rows[0]?.count ?? 0;
      },
    });
    await client.query("set constraints all immediate");
    for (const table of tables.keys()) await client.query(`alter table ${quoted(table)} enable trigger user`);
    await client.query("commit");
    await client.query("analyze");
    return result;
  });
}

async function insertRows(
  client: pg.Client,
  table: string,
  columns: readonly string[],
  rows: readonly AnyRow[],
): Promise<void> {
  let place = 0;
  const places = rows.map(() => `(${columns.map(() => `$${++place}`).join(", ")})`);
  await client.query(
    `insert into ${quoted(table)} (${columns.map(quoted).join(", ")}) values ${places.join(", ")}`,
    rows.flatMap((row) => columns.map((column) => toStored(row[column]))),
  );
}

async function withClient<T>(address: DatabaseAddress, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(plainConfig(address));
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function tablesOf(client: pg.Client): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await client.query<{ table: string; columns: string }>(
    `select table_name as table, json_agg(column_name order by ordinal_position)::text as columns
    from information_schema.columns where table_schema = current_schema and table_name <> 'migration'
    group by table_name order by table_name`,
  );
  return new Map(rows.map(({ table, columns }) => [table, JSON.parse(columns)]));
}

const quoted = (name: string) => `"${name}"`;
