import { describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { isEngineFailure } from "./storage-problem.ts";

/** Returns the error that the engine throws for a statement, after others. */
function thrownBy(statement: string, ...before: readonly string[]): unknown {
  const raw = new Database(":memory:");
  try {
    for (const each of before) raw.exec(each);
    raw.exec(statement);
  } catch (error) {
    return error;
  } finally {
    raw.close();
  }
  throw new Error("the engine took the statement");
}

const TABLE = "create table fact (name text primary key) strict";

describe("an error of the engine", () => {
  test.each([
    [
      "a full disk",
      thrownBy("insert into fact values (hex(zeroblob(9999)))", TABLE, "pragma max_page_count = 3"),
    ],
    ["a database that may not be written", thrownBy(TABLE, "pragma query_only = on")],
  ])("is its own failure: %s", (_, error) => {
    expect(isEngineFailure(error)).toBe(true);
  });

  test.each([
    ["a broken rule", thrownBy("insert into fact values ('a'), ('a')", TABLE)],
    ["a value of another type", thrownBy("insert into fact values (x'00')", TABLE)],
    ["a text that is no JSON", thrownBy("select json('{')")],
    ["an error of another origin", new SyntaxError("no JSON")],
    ["the error of a file", Object.assign(new Error("gone"), { code: "ENOENT" })],
  ])("is none for %s", (_, error) => {
    expect(isEngineFailure(error)).toBe(false);
  });
});
