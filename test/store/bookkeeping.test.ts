import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { BOOKKEEPING_COLUMNS, type Store, SYSTEM } from "../../src/store/store.ts";
import { stopAll } from "../harness/server.ts";
import { expectWholeRecord, ONE, openWithOrganizations, put, TWO } from "./made-up-changes.ts";

let store: Store;

beforeEach(async () => {
  ({ store } = await openWithOrganizations());
});
afterEach(() => store.close());
afterAll(stopAll);

describe("a note", () => {
  const insertToken = (id: string) =>
    store.write(SYSTEM, "test", async (tx) => {
      const row = {
        kind: "personal" as const,
        subject_id: "s",
        hmac_key_id: null,
        read_only: 0,
        expires_at: 0,
        body: "{}",
      };
      await builderOf(tx.db)
        .insertInto("token")
        .values({ id, organization_id: ONE, hash: Buffer.from(id), last_used_at: null, ...row })
        .execute();
    });
  const lastUses = async () =>
    (await builderOf(store.reader).selectFrom("token").select("last_used_at").orderBy("id").execute()).map(
      ({ last_used_at }) => last_used_at,
    );

  beforeEach(async () => {
    await insertToken("a");
    await insertToken("b");
  });

  test("changes what it may of the row that it names, and leaves no record", async () => {
    await store.note("token", "a", { last_used_at: 7 });
    expect(await lastUses()).toEqual([7, null]);
    await expectWholeRecord(store, { [ONE]: [], [TWO]: [] });
  });

  test.each(["expires_at", "disabled_at", "body", "id", "read_only"])(
    "of the column %s is refused",
    async (column) => {
      const before = await builderOf(store.reader).selectFrom("token").selectAll().execute();
      const values = { last_used_at: 7, [column]: 0 };
      await expect(store.note("token", "a", values)).rejects.toThrow(`token.${column} is no bookkeeping`);
      expect(await builderOf(store.reader).selectFrom("token").selectAll().execute()).toEqual(before);
    },
  );

  test("of a table without bookkeeping is refused", async () => {
    for (const table of ["organization", "audit_log", "event"]) {
      await expect(store.note(table as "token", ONE, { name: "x" } as object)).rejects.toThrow();
    }
    expect(BOOKKEEPING_COLUMNS).toEqual({
      token: ["last_used_at", "hash", "hmac_key_id"],
      project: ["popularity"],
      environment: ["counted"],
      runner: ["seen_at", "instance_seen_at", "agent_slots", "requests_until", "kept_policies"],
    });
  });

  test("among several that is refused takes the others with it", async () => {
    const notes = [
      { table: "token", id: "a", values: { last_used_at: 7 } },
      { table: "token", id: "b", values: { expires_at: 7 } },
    ] as const;
    await expect(store.touchAll(notes)).rejects.toThrow("token.expires_at");
    expect(await lastUses()).toEqual([null, null]);
    await store.touchAll(notes.map(({ table, id }) => ({ table, id, values: { last_used_at: 8 } })));
    expect(await lastUses()).toEqual([8, 8]);
  });

  test("shares its commit with writes that wait at the same time", async () => {
    const outcomes = await Promise.allSettled([
      store.note("token", "a", { last_used_at: 9 }),
      store.write(SYSTEM, "test", async () => {
        throw new Error("no");
      }),
      store.write(SYSTEM, "test", (tx) => put(tx, "fact")),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await lastUses()).toEqual([9, null]);
  });
});
