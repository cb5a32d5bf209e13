import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Kysely, sql } from "kysely";
import { stopAll, temporaryFolder } from "../../test/harness/server.ts";
import type { TokenTable } from "./identity/identity-schema.ts";
import { prepared, preparedForRows, ROWS_PER_RUN } from "./prepared.ts";
import type { Schema } from "./schema.ts";
import { type Connection, openConnection } from "./sqlite/connection.ts";
import { StableSqliteDialect } from "./sqlite/dialect.ts";
import { migrate } from "./sqlite/migrate.ts";

let connection: Connection;
let other: Connection;
let db: Kysely<Schema>;

const token = (id: string, hash: Uint8Array): TokenTable => ({
  id,
  organization_id: "o",
  kind: "personal",
  subject_id: "s",
  hash,
  hmac_key_id: null,
  read_only: 0,
  expires_at: 9_007_199_254_740_991,
  last_used_at: null,
  creator_account_id: null,
  disabled_at: null,
  warned_at: null,
  parent_id: null,
  identity_id: null,
  provider_session_id: null,
  body: "{}",
});

beforeAll(async () => {
  const file = join(temporaryFolder(), "chartroom.db");
  connection = openConnection(file, "writer");
  migrate(connection.raw);
  other = openConnection(file, "reader");
  db = connection.db;
  await db
    .insertInto("organization")
    .values({
      id: "o",
      name: "o",
      created_at: 0,
      updated_at: 0,
      sequence: 0,
      enterprise: 0,
      chain_hash: null,
      pruned_sequence: 0,
      invite_domains: "[]",
    })
    .execute();
});
afterAll(async () => {
  other.close();
  connection.close();
  await stopAll();
});

/** The form in which each parameter arrives in the engine. */
const echo = prepared<{ a: unknown; b: unknown }, { a: unknown; b: unknown; again: unknown; kind: string }>(
  (on, { a, b }) =>
    on.selectNoFrom([
      sql`${a}`.as("a"),
      sql`${b}`.as("b"),
      sql`${a}`.as("again"),
      sql<string>`typeof(${b})`.as("kind"),
    ]),
);

describe("a prepared query", () => {
  test("gives each placeholder its value, in whatever order and as often as the query has it", async () => {
    expect(await echo(db, { a: "first", b: "second" })).toEqual([
      { a: "first", b: "second", again: "first", kind: "text" },
    ]);
    expect(await echo(db, { b: "first", a: "second" })).toEqual([
      { a: "second", b: "first", again: "second", kind: "text" },
    ]);
  });

  test.each([
    ["null", null, "null"],
    ["a whole number", 9_007_199_254_740_991, "real"],
    ["a fraction", -0.5, "real"],
    ["an empty text", "", "text"],
    ["a text that looks like SQL", "'; drop table organization; --", "text"],
    ["bytes", Buffer.from([0, 255, 10]), "blob"],
    ["no bytes", Buffer.alloc(0), "blob"],
  ])("carries %s unchanged", async (_, value, kind) => {
    const [row] = await echo(db, { a: value, b: value });
    expect(row).toEqual({ a: value, b: value, again: value, kind });
  });

  test("keeps the values of the query itself next to those that are given", async () => {
    const within = prepared<{ limit: number }, { value: number }>((on, { limit }) =>
      on
        .selectFrom(sql<{ value: number }>`(select 1 as value union select 2 union select 3)`.as("numbers"))
        .select("value")
        .where("value", ">", 1)
        .limit(limit),
    );
    expect(await within(db, { limit: 1 })).toEqual([{ value: 2 }]);
    expect(await within(db, { limit: 9 })).toEqual([{ value: 2 }, { value: 3 }]);
  });

  test("writes bytes, null and large numbers as they are", async () => {
    const insert = prepared<TokenTable, unknown>((on, row) =>
      on.insertInto("token").values({
        id: row.id,
        organization_id: row.organization_id,
        kind: row.kind,
        subject_id: row.subject_id,
        hash: row.hash,
        hmac_key_id: row.hmac_key_id,
        read_only: row.read_only,
        expires_at: row.expires_at,
        last_used_at: row.last_used_at,
        body: row.body,
      }),
    );
    const rows = [token("t1", Uint8Array.of(1, 0, 255)), token("t2", new Uint8Array())];
    for (const row of rows) await insert(db, row);
    const read = await other.db.selectFrom("token").selectAll().orderBy("id").execute();
    expect(read.map(({ hash, ...rest }) => ({ ...rest, hash: [...hash] }))).toEqual(
      rows.map(({ hash, ...rest }) => ({ ...rest, hash: [...hash] })),
    );
  });

  test("is built once for each connection, however often and with whatever values it runs", async () => {
    const built: unknown[] = [];
    const count = prepared<{ id: string }, { id: string }>((on, { id }) => {
      built.push(on);
      return on.selectFrom("organization").select("id").where("id", "=", id);
    });
    for (const id of ["o", "none", "o"]) await count(db, { id });
    expect(built).toEqual([db]);
    expect(await count(other.db, { id: "o" })).toEqual([{ id: "o" }]);
    expect(await count(other.db, { id: "none" })).toEqual([]);
    expect(built).toEqual([db, other.db]);
  });

  test("answers the same where nothing runs its statements directly", async () => {
    const plain = new Kysely<Schema>({ dialect: new StableSqliteDialect({ database: connection.raw }) });
    for (const on of [db, plain]) {
      expect(await echo(on, { a: null, b: Buffer.from([1]) })).toEqual([
        { a: null, b: Buffer.from([1]), again: null, kind: "blob" },
      ]);
      await expect(echo(on, { a: true, b: 1 })).rejects.toThrow("can only bind");
    }
  });

  test("can run again before it has answered, each with its own values", async () => {
    const runs = Array.from({ length: 50 }, (_, index) => echo(db, { a: index, b: "x" }));
    expect((await Promise.all(runs)).map(([row]) => row?.a)).toEqual(runs.map((_, index) => index));
  });

  test("answers the rows that a write returns", async () => {
    const rename = prepared<{ id: string; name: string }, { name: string }>((on, { id, name }) =>
      on.updateTable("organization").set({ name }).where("id", "=", id).returning("name"),
    );
    expect(await rename(db, { id: "o", name: "harbour" })).toEqual([{ name: "harbour" }]);
    expect(await rename(db, { id: "none", name: "quay" })).toEqual([]);
  });
});

const insertTokens = preparedForRows<TokenTable>((on, rows) =>
  on.insertInto("token").values(
    rows.map((row) => ({
      id: row.id,
      organization_id: row.organization_id,
      kind: row.kind,
      subject_id: row.subject_id,
      hash: row.hash,
      read_only: row.read_only,
      expires_at: row.expires_at,
      body: row.body,
    })),
  ),
);

describe("a prepared insert", () => {
  test.each([0, 1, ROWS_PER_RUN - 1, ROWS_PER_RUN, 2 * ROWS_PER_RUN + 3])(
    "writes %s rows in their order, each with its values, full statements first",
    async (count) => {
      const rows = Array.from({ length: count }, (_, index) => ({
        ...token(`${count} ${String(index).padStart(2, "0")}`, Uint8Array.of(count, index)),
        body: `{"index":${index}}`,
      }));
      let statements = 0;
      connection.beforeQuery = () => {
        statements += 1;
      };
      await insertTokens(db, rows);
      connection.beforeQuery = () => undefined;
      expect(statements).toBe(Math.ceil(count / ROWS_PER_RUN));
      const read = await other.db
        .selectFrom("token")
        .select(["id", "hash", "body"])
        .where("id", "like", `${count} %`)
        .orderBy(sql`rowid`)
        .execute();
      expect(read.map(({ hash, ...rest }) => ({ ...rest, hash: [...hash] }))).toEqual(
        rows.map(({ id, hash, body }) => ({ id, hash: [...hash], body })),
      );
    },
  );

  test("changes the rows that it names, and no others", async () => {
    const change = preparedForRows<{ id: string; organizationId: string }>((on, rows) =>
      on
        .updateTable("token")
        .set({ read_only: 1 })
        .where(
          "id",
          "in",
          rows.map(({ id }) => id),
        )
        .where("organization_id", "=", rows[0]?.organizationId ?? ""),
    );
    const ids = Array.from({ length: ROWS_PER_RUN + 3 }, (_, index) => `change ${index}`);
    const rows = ids.map((id, index) => token(id, Uint8Array.of(210, index)));
    await insertTokens(db, rows);
    const named = ids.slice(0, -1);
    await change(
      db,
      named.map((id) => ({ id, organizationId: "o" })),
    );
    const read = await other.db
      .selectFrom("token")
      .select(["id", "read_only"])
      .where("id", "like", "change %")
      .execute();
    expect(new Map(read.map(({ id, read_only }) => [id, read_only]))).toEqual(
      new Map(ids.map((id) => [id, named.includes(id) ? 1 : 0])),
    );
  });

  test("writes no row of a statement of which one fails", async () => {
    const rows = Array.from({ length: ROWS_PER_RUN }, (_, index) =>
      token(`half ${index}`, Uint8Array.of(200, index)),
    );
    const twice = rows.with(-1, token("half 0", Uint8Array.of(201)));
    await expect(insertTokens(db, twice)).rejects.toThrow("UNIQUE");
    const { count } = await other.db
      .selectFrom("token")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("id", "like", "half %")
      .executeTakeFirstOrThrow();
    expect(count).toBe(0);
  });
});
