import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { bytesOf } from "../../src/store/expressions.ts";
import { textOf } from "../../src/store/long-text.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";

let made: TestStore;
beforeAll(() => {
  made = openTestStore();
});
afterAll(() => made.close());

test.each([
  ["none", ""],
  ["short ASCII", "ship"],
  ["of all lengths of UTF-8", "aé漢😀\u0000\ue0fd\ue0fe\ue0ff\n"],
  ["long", "aé漢😀".repeat(100_000)],
])("a text is the same when it is read as bytes: %s", async (name, value) => {
  const { store } = made;
  await store.write(SYSTEM, "test", ({ db }) =>
    builderOf(db).insertInto("fact").values({ name, value }).execute(),
  );
  const { bytes, text } = await builderOf(store.reader)
    .selectFrom("fact")
    .select([bytesOf("fact.value").as("bytes"), "value as text"])
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  const read = textOf(bytes);
  expect(read).toBe(value);
  expect(read).toBe(text);
});

testOnSqlite("the other engine reads texts as they are")(
  "the memory of a long text's bytes is released when it has been read",
  async () => {
    const value = "a".repeat(1_000_000);
    const { store } = made;
    await store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db).insertInto("fact").values({ name: "released", value }).execute(),
    );
    const { bytes } = await builderOf(store.reader)
      .selectFrom("fact")
      .select(bytesOf("fact.value").as("bytes"))
      .where("name", "=", "released")
      .executeTakeFirstOrThrow();
    if (typeof bytes === "string") throw new Error("the text was not read as bytes");
    expect(bytes.buffer.byteLength).toBe(value.length);
    expect(textOf(bytes)).toBe(value);
    expect(bytes.buffer.byteLength).toBe(0);
  },
);

test("the memory of bytes stays when others share it", () => {
  const shared = Buffer.alloc(200_000, "a");
  const part = shared.subarray(0, 100_000);
  expect(textOf(part)).toBe("a".repeat(100_000));
  expect(shared.toString()).toBe("a".repeat(200_000));
});
