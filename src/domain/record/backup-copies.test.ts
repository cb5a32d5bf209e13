import { describe, expect, test } from "@jest/globals";
import { copiesToRemove, nameOfCopy, newestCopy, timeOfCopy } from "./backup-copies.ts";

const NOW = Date.UTC(2026, 10, 26, 3, 17, 0, 5);
const DAY_MS = 86_400_000;
/** Copies of this day and those before it, the newest first. */
const copies = (count: number) => Array.from({ length: count }, (_, day) => nameOfCopy(NOW - day * DAY_MS));

describe("the name of a copy", () => {
  test("says its moment, to the millisecond", () => {
    expect(nameOfCopy(NOW)).toBe("chartroom-20261126T031700.005Z.db");
    expect(timeOfCopy(nameOfCopy(NOW))).toBe(NOW);
  });

  test.each([
    "chartroom.db",
    "chartroom-20261126T031700.005Z.db.failed",
    "chartroom-20261126T031700.005Z.unchecked",
    "chartroom-20261399T031700.005Z.db",
    "of-another.db",
  ])("is not %s", (name) => {
    expect(timeOfCopy(name)).toBeUndefined();
    expect(newestCopy([name])).toBeUndefined();
  });

  test("tells which is the newest, whatever the order", () => {
    expect(newestCopy([...copies(3).toReversed(), "backup.lock"])).toBe(NOW);
  });
});

describe("what goes", () => {
  test.each([
    [2, []],
    [3, []],
    [4, copies(4).slice(3)],
    [6, copies(6).slice(3)],
  ])("of %s copies, where 3 are kept, is what is older", (count, gone) => {
    expect(copiesToRemove(copies(count), nameOfCopy(NOW), { number: 3, days: 0 }, NOW)).toEqual(gone);
  });

  test.each([
    [2, 2 * DAY_MS, []],
    [2, 2 * DAY_MS + 1, [nameOfCopy(NOW - 2 * DAY_MS)]],
  ])("by age is what is past it", (days, passed, gone) => {
    const now = NOW - 2 * DAY_MS + passed;
    expect(copiesToRemove(copies(3), nameOfCopy(NOW), { number: 9, days }, now)).toEqual(gone);
  });

  test("is never the new copy, however old its clock says it is, nor a file of somebody else", () => {
    const made = nameOfCopy(NOW - 400 * DAY_MS);
    const names = ["notes.txt", made, nameOfCopy(NOW)];
    expect(copiesToRemove(names, made, { number: 1, days: 7 }, NOW)).toEqual([nameOfCopy(NOW)]);
  });
});
