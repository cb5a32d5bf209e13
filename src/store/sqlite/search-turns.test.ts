import { expect, test } from "@jest/globals";
import { Turns } from "./search-turns.ts";

const drain = (turns: Turns<string>) => {
  const taken: string[] = [];
  for (let one = turns.next(); one !== undefined; one = turns.next()) taken.push(one);
  return taken;
};

test("everybody gets a turn before anybody gets a second one, and what is one's own keeps its order", () => {
  const turns = new Turns<string>({ each: 10, all: 10 });
  for (const one of ["a1", "a2", "a3", "b1", "c1", "b2"]) expect(turns.add(one.charAt(0), one)).toBe(true);
  expect(turns.next()).toBe("a1");
  turns.add("d", "d1");
  expect(drain(turns)).toEqual(["b1", "c1", "a2", "d1", "b2", "a3"]);
  expect(turns.next()).toBeUndefined();
});

test("one owner has as many as one may, all together as many as all may", () => {
  const turns = new Turns<string>({ each: 2, all: 3 });
  expect(["a", "a", "a"].map((owner) => turns.add(owner, owner))).toEqual([true, true, false]);
  expect(["b", "b", "c"].map((owner) => turns.add(owner, owner))).toEqual([true, false, false]);
  turns.next();
  expect([turns.add("a", "a"), turns.add("a", "a")]).toEqual([true, false]);
});

test("what is taken out waits no more and makes room; what does not wait is none of it", () => {
  const turns = new Turns<string>({ each: 2, all: 2 });
  for (const one of ["a1", "a2"]) turns.add("a", one);
  turns.remove("a", "a1");
  turns.remove("a", "a1");
  turns.remove("b", "b1");
  expect(turns.add("b", "b1")).toBe(true);
  expect(turns.add("c", "c1")).toBe(false);
  turns.remove("b", "b1");
  expect(drain(turns)).toEqual(["a2"]);
});
