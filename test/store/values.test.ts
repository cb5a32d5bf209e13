import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { isOneOf, textAt } from "../../src/store/expressions.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";

let made: TestStore;
beforeAll(async () => {
  made = openTestStore();
  await made.createOrganization("harbour");
});
afterAll(() => made.close());

test("values arrive as the same types on both engines: whole numbers as numbers, whatever computed them", async () => {
  const most = Number.MAX_SAFE_INTEGER;
  await made.store.write(SYSTEM, "test", ({ db }) =>
    builderOf(db)
      .updateTable("organization")
      .set({ created_at: most, updated_at: -most, sequence: 0, chain_hash: Buffer.from([0, 255]) })
      .execute(),
  );
  const found = await builderOf(made.store.reader)
    .selectFrom("organization")
    .select(["created_at", "updated_at", "sequence", "chain_hash", "name"])
    .execute();
  expect(
    found.map((row) => ({ ...row, chain_hash: Buffer.from(row.chain_hash ?? []).toString("hex") })),
  ).toEqual([{ created_at: most, updated_at: -most, sequence: 0, chain_hash: "00ff", name: "harbour" }]);
  expect(found[0]?.chain_hash).toBeInstanceOf(Uint8Array);
  const computed = await builderOf(made.store.reader)
    .selectFrom("organization")
    .select(({ fn }) => [
      fn.countAll<number>().as("count"),
      fn.max("created_at").as("max"),
      fn.sum<number>("created_at").as("sum"),
      fn.sum<number>("sequence").as("zero"),
    ])
    .executeTakeFirstOrThrow();
  expect(computed).toEqual({ count: 1, max: most, sum: most, zero: 0 });
  const { organization, none } = await builderOf(made.store.reader)
    .selectNoFrom(({ selectFrom }) => [
      selectFrom("organization").select("sequence").as("organization"),
      selectFrom("organization").select("sequence").where("name", "=", "absent").as("none"),
    ])
    .executeTakeFirstOrThrow();
  expect([organization, none]).toEqual([0, null]);
});

test("a text is read out of JSON whose other texts have U+0000, or what looks like its escape", async () => {
  const { store } = made;
  for (const other of ["\0", "a\0\0b", "\\\0", "\\\\\0\\u0000\0", "\\u0000", "\ud83d\udc27\0"]) {
    const name = "\\u0000 and more";
    const body = JSON.stringify({ [other]: other, metadata: { other, name }, list: [other] });
    await store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db).updateTable("organization").set({ name: body }).execute(),
    );
    const { found, none } = await builderOf(store.reader)
      .selectFrom("organization")
      .select([
        textAt("organization.name", ["metadata", "name"]).as("found"),
        textAt("organization.name", ["metadata", "absent"]).as("none"),
      ])
      .executeTakeFirstOrThrow();
    expect([other, found, none]).toEqual([other, name, null]);
  }
});

test("rows are found by keys that have U+0000, or what looks like its escape", async () => {
  const { store } = made;
  for (const name of ["\0", "a\0\0b", "\\\0", "\\\\\0\\u0000\0", "\\u0000", "\ue0ff\ue0fe\ue0fe"]) {
    await store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db).updateTable("organization").set({ name }).execute(),
    );
    const found = (keys: readonly string[]) =>
      builderOf(store.reader)
        .selectFrom("organization")
        .select("name")
        .where(
          isOneOf(
            ["name"],
            keys.map((key) => [key]),
          ),
        )
        .execute();
    expect(await found(["another", name])).toEqual([{ name }]);
    expect(await found([`${name}\0`, `\\${name}`])).toEqual([]);
  }
});
