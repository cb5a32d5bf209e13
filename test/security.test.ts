import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";

const root = join(import.meta.dirname, "..");
const page = readFileSync(join(root, "docs/security.md"), "utf8");

/** The rows of all tables of the page, as [promise, tests]: the first cell and the last. */
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.endsWith(" shown by |"))
  .map((line) => line.slice(2, -2).split(" | "))
  .map((cells) => [cells[0] ?? "", cells.at(-1) ?? ""] as const);

describe("the page about security", () => {
  test("makes promises", () => {
    expect(rows.length).toBeGreaterThan(20);
  });

  test.each(rows)("names tests that exist: %s", (_, tests) => {
    const named = tests.split(", ").map((each) => /^`((?:src|test)\/\S+\.test\.ts)`$/.exec(each)?.[1]);
    expect(named.filter((file) => file === undefined || !existsSync(join(root, file)))).toEqual([]);
  });
});
