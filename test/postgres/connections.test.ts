import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { sql } from "kysely";
import pg from "pg";
import { plainConfig } from "../../src/store/postgres/connection.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Reader, type Store, SYSTEM, within } from "../../src/store/store.ts";
import { makeOrganization, nameOf } from "../harness/locked-organizations.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster, openProcess } from "../harness/postgres-store.ts";

let cluster: PostgresCluster;
let url: string;
let store: Store;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  url = await emptyDatabase(cluster);
  const name = new URL(url).pathname.slice(1);
  await onCluster(`${cluster.url}/postgres`, `alter database ${name} set synchronous_commit = off`);
  store = await openProcess(url);
});
afterAll(async () => {
  await store?.close();
  await cluster?.stop();
});

/** Returns the value of a setting on the connection of a reader. */
async function settingOf(db: Reader, name: string): Promise<string | undefined> {
  const { rows } = await sql<{ value: string }>`select current_setting(${name}) as value`.execute(
    builderOf(db),
  );
  return rows[0]?.value;
}

describe("every connection", () => {
  test.each([
    ["that reads", (name: string) => settingOf(store.reader, name)],
    ["that lists", (name: string) => settingOf(store.lister({ organizationId: "none" }), name)],
    ["that writes", (name: string) => store.write(SYSTEM, "test", ({ db }) => settingOf(db, name))],
  ])("%s compiles no statement, and has commits on disk whatever the database says", async (_, read) => {
    expect(await read("jit")).toBe("off");
    expect(await read("synchronous_commit")).toBe("on");
    expect(await read("timezone")).toBe("UTC");
  });
});

test("a connection of a move has its commit on disk whatever the database says", async () => {
  const client = new pg.Client(plainConfig({ url }));
  await client.connect();
  const { rows } = await client.query("show synchronous_commit");
  await client.end();
  expect(rows).toEqual([{ synchronous_commit: "on" }]);
});

/*
 * The driver warns of a query on a connection that has one to run, and its next major release refuses it; the tests'
 * environment fails on warnings of this kind.
 */
describe("a write that asks for several things at once", () => {
  test("gets all of them, one after the other", async () => {
    const scope = await makeOrganization(store);
    const asked = Array.from({ length: 20 }, (_, index) => index);
    const got = await store.write(
      SYSTEM,
      "test",
      ({ db }) =>
        Promise.all(
          asked.map(async (index) => {
            const { rows } = await sql<{ index: number }>`select ${index}::int as index`.execute(
              builderOf(db),
            );
            return rows[0]?.index;
          }),
        ),
      within(scope),
    );
    expect(got).toEqual(asked);
  });

  test("leaves none of them to the next write when one of them fails", async () => {
    const scope = await makeOrganization(store);
    const renaming = (db: Reader, name: string) =>
      builderOf(db)
        .updateTable("organization")
        .set({ name })
        .where("id", "=", scope.organizationId)
        .execute();
    const failing = store.write(
      SYSTEM,
      "test",
      ({ db }) =>
        Promise.all([
          sql`select 1 / 0`.execute(builderOf(db)),
          renaming(db, "first"),
          renaming(db, "second"),
          renaming(db, "third"),
        ]),
      within(scope),
    );
    const next = store.write(SYSTEM, "test", ({ db }) => nameOf(db, scope), within(scope));
    await expect(failing).rejects.toThrow("division by zero");
    expect(await next).not.toMatch(/first|second|third/);
  });
});
