import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { sql } from "kysely";
import { builderOf } from "../../../src/store/query-builder.ts";
import { OPERATOR, type Store, type WriteTransaction } from "../../../src/store/store.ts";
import { postgresUrl } from "../../harness/postgres-database.ts";
import { stopAll } from "../../harness/server.ts";
import { auditOf, factsIn, ONE, openWithOrganizations, TWO } from "../made-up-changes.ts";

let store: Store;

beforeEach(async () => {
  ({ store } = await openWithOrganizations());
});
afterEach(() => store.close());
afterAll(stopAll);

describe("the audit log", () => {
  const rewritten = async (tx: WriteTransaction) => {
    const row = await builderOf(tx.db).selectFrom("audit_log").selectAll().limit(1).executeTakeFirstOrThrow();
    return { ...row, actor_id: "somebody else" };
  };
  const attempts: [string, (tx: WriteTransaction) => Promise<unknown>][] = [
    ["updated", (tx) => builderOf(tx.db).updateTable("audit_log").set({ reason: "x" }).execute()],
    ["removed", (tx) => builderOf(tx.db).deleteFrom("audit_log").execute()],
    [
      "replaced",
      async (tx) =>
        builderOf(tx.db)
          .replaceInto("audit_log")
          .values(await rewritten(tx))
          .execute(),
    ],
    [
      "replaced by its number",
      async (tx) =>
        builderOf(tx.db)
          .replaceInto("audit_log")
          .values({ ...(await rewritten(tx)), id: "another" })
          .execute(),
    ],
    [
      "updated on a conflict",
      async (tx) =>
        builderOf(tx.db)
          .insertInto("audit_log")
          .values(await rewritten(tx))
          .onConflict((conflict) => conflict.column("id").doUpdateSet({ actor_id: "somebody else" }))
          .execute(),
    ],
  ];

  // PostgreSQL knows no other statement that replaces a row than one for a conflict.
  const possible = attempts.filter(([name]) => postgresUrl() === undefined || !name.startsWith("replaced"));
  test.each(possible)("cannot have a row %s", async (_, attempt) => {
    const before = [await auditOf(store, ONE), await auditOf(store, TWO)];
    await expect(store.write(OPERATOR, "test", attempt)).rejects.toThrow("audit rows are never");
    expect([await auditOf(store, ONE), await auditOf(store, TWO)]).toEqual(before);
  });
});

describe("the reader", () => {
  test("cannot write", async () => {
    const writing = builderOf(store.reader).insertInto("fact").values({ name: "fact", value: "" }).execute();
    const dropping = sql`drop table fact`.execute(builderOf(store.reader));
    for (const refused of await Promise.allSettled([writing, dropping])) {
      const { message, cause } = refused.status === "rejected" ? refused.reason : {};
      expect(cause?.message ?? message).toMatch(/readonly|read-only transaction/);
    }
    expect(await factsIn(store)).toEqual([]);
  });
});
