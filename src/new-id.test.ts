import { expect, test } from "@jest/globals";
import { validate, version } from "uuid";
import { idMaker } from "./new-id.ts";

const MANY = 1_000;

test("ids ascend within a millisecond, over time and when the clock is set back, and none comes twice", () => {
  let at = Date.UTC(2026, 0, 1);
  const newId = idMaker(() => at);
  const ids: string[] = [];
  for (const step of [0, 1, -5_000, 10_000]) {
    at += step;
    ids.push(...Array.from({ length: MANY }, newId));
  }
  expect(ids.every((id) => validate(id) && version(id) === 7 && id === id.toLowerCase())).toBe(true);
  expect(ids).toEqual(ids.toSorted());
  // The last 48 bits of each id are random, and no two ids share them.
  expect(new Set(ids.map((id) => id.slice(-12))).size).toBe(ids.length);
});

test("an id tells its millisecond", () => {
  const at = Date.UTC(2026, 10, 21, 23);
  const [first] = Array.from(
    { length: 2 },
    idMaker(() => at),
  );
  expect(Number.parseInt(first?.replace("-", "").slice(0, 12) ?? "", 16)).toBe(at);
});

test("two makers share nothing", () => {
  const at = 1_767_225_600_000;
  expect(idMaker(() => at)()).not.toBe(idMaker(() => at)());
});
