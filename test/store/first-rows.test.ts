import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { type KyselyPlugin, type SqlBool, sql } from "kysely";
import { SearchTooLong } from "../../src/domain/error.ts";
import { checkDeadline } from "../../src/store/expressions.ts";
import { countRows, firstRows, type RowOrder } from "../../src/store/first-rows.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import type { SqliteStore } from "../../src/store/sqlite/open.ts";
import type { SearchParameters } from "../../src/store/sqlite/search/searches.ts";
import { listing } from "../../src/store/sqlite/search/searching.ts";
import { type Reader, type Scope, SYSTEM } from "../../src/store/store.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { postgresUrl } from "../harness/postgres-database.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";

const ROWS = 23;
const AT_ONCE = 5;

let testStore: TestStore;
let db: Reader;
/** How many searches there were; the first takes too long. */
let searches = 0;
beforeAll(async () => {
  testStore = openTestStore();
  const caller = await testStore.createOrganization("harbour");
  await testStore.store.write(SYSTEM, "test", async (tx) => {
    for (let index = 0; index < ROWS; index++) {
      const name = `row ${String(index).padStart(2, "0")}`;
      await builderOf(tx.db)
        .insertInto("fact")
        .values({ name, value: `${index % 4}` })
        .execute();
    }
  });
  const search = (async (...args) => {
    countSearch();
    return testStore.search(...args);
  }) as SqliteStore["search"];
  const reading = { db: builderOf(testStore.store.reader), attempt: () => undefined };
  db =
    postgresUrl() === undefined
      ? listing({ search }, reading, caller)
      : builderOf(testStore.store.lister(caller)).withPlugin(COUNTING);
});

/** Counts a search. @throws SearchTooLong for the first */
function countSearch(): void {
  searches += 1;
  if (searches === 1) throw new SearchTooLong(0);
}

const COUNTING: KyselyPlugin = {
  transformQuery: ({ node }) => node,
  async transformResult({ result }) {
    countSearch();
    return result;
  },
};
afterAll(() => testStore.close());

const facts = () => builderOf(db).selectFrom("fact").where(checkDeadline()).where("name", "like", "row %");
const names = (value: string) =>
  Array.from({ length: ROWS }, (_, index) => index)
    .filter((index) => `${index % 4}` === value)
    .map((index) => `row ${String(index).padStart(2, "0")}`);

describe.each(["asc", "desc"] as const)("a list that takes too long as a whole, %s", (direction) => {
  const byName: RowOrder = { columns: ["fact.name"], direction };
  const byValue: RowOrder = { columns: ["fact.value", "fact.name"], direction };
  const first = (value: string, order: RowOrder, limit: number) => {
    searches = 0;
    const own = facts().select(["name", "value"]);
    return firstRows(own, own.where("value", "=", value), order, limit, AT_ONCE);
  };
  const inOrder = <T>(values: T[]) => (direction === "asc" ? values : values.toReversed());

  test.each([1, 2, 5, 6, 100])("gives the first %i rows that fit, in pieces", async (limit) => {
    const found = await first("3", byName, limit);
    expect(found.map(({ name }) => name)).toEqual(inOrder(names("3")).slice(0, limit));
    expect(searches).toBeGreaterThan(2);
  });

  test("ends when it has enough, and goes to the end for what nothing fits", async () => {
    await first("3", byName, 1);
    const few = searches;
    expect(await first("none", byName, 1)).toEqual([]);
    expect(searches).toBeGreaterThan(few);
  });

  test("may be ordered by several columns", async () => {
    searches = 0;
    const own = facts().select(["name", "value"]);
    const found = await firstRows(own, own.where("name", ">", "row 04"), byValue, 100, AT_ONCE);
    const all = ["0", "1", "2", "3"].flatMap(names).filter((name) => name > "row 04");
    expect(found.map(({ name }) => name)).toEqual(inOrder(all));
  });

  test("begins behind the page before", async () => {
    searches = 0;
    const own = facts().select(["name", "value"]);
    const order = { ...byName, after: ["row 04"] };
    const found = await firstRows(own, own.where("value", "=", "3"), order, 100, AT_ONCE);
    const behind = names("3").filter((name) => (direction === "asc" ? name > "row 04" : name < "row 04"));
    expect(found.map(({ name }) => name)).toEqual(inOrder(behind));
  });

  test.each([1, 5, 6, 100])("is counted no further than %i", async (limit) => {
    searches = 0;
    const own = facts();
    const count = await countRows(db, own, own.where("value", "=", "1"), byName, limit, AT_ONCE);
    expect(count).toBe(Math.min(limit, names("1").length));
  });
});

/** As many rows as the second page of a list goes through, each of which says so when the engine reads it. */
async function rowsRead(direction: RowOrder["direction"], rows: number): Promise<number> {
  const raw = new Database(":memory:");
  let read = 0;
  raw.function("in_time", () => 1);
  raw.function("is_read", () => {
    read += 1;
    return 1;
  });
  raw.exec("create table fact (name text primary key, value text not null) without rowid");
  const insert = raw.prepare("insert into fact (name, value) values (?, '')");
  for (let index = 0; index < rows + 2; index++) insert.run(`row ${String(index).padStart(4, "0")}`);
  let isFirst = true;
  const search = (async (_name: string, _scope: Scope, { sql: query, values }: SearchParameters<"rows">) => {
    if (isFirst) {
      isFirst = false;
      throw new SearchTooLong(0);
    }
    return { rows: raw.prepare(query).all(...values) };
  }) as unknown as SqliteStore["search"];
  const reading = { db: builderOf(testStore.store.reader), attempt: () => undefined };
  const db = listing({ search }, reading, { organizationId: "" });
  const own = db.selectFrom("fact").select("name").where(checkDeadline()).where(sql<SqlBool>`is_read()`);
  const after = [direction === "asc" ? "row 0000" : `row ${String(rows + 1).padStart(4, "0")}`];
  const order: RowOrder = { columns: ["fact.name"], direction, after };
  expect(await firstRows(own, own.where("value", "=", "none"), order, 1, AT_ONCE)).toEqual([]);
  raw.close();
  return read;
}

for (const direction of ["asc", "desc"] as const)
  testOnSqlite("a function that the engine calls for each row counts them")(
    `each piece of a later page begins where the one before ended, ${direction}`,
    async () => {
      // Each row once to find the end of its piece, and once to test it; one row a piece more.
      for (const rows of [50, 500]) expect(await rowsRead(direction, rows)).toBeLessThan(3 * rows);
    },
  );
