import { expect, test } from "@jest/globals";
import { FairQueue } from "./search-turns.ts";

const of = (organizationId: string, callerId = "c") => ({ organizationId, callerId });

const drain = (turns: FairQueue<string>) => {
  const taken: string[] = [];
  for (let one = turns.next(); one !== undefined; one = turns.next()) taken.push(one);
  return taken;
};

test("everybody gets a turn before anybody gets a second one, and what is one's own keeps its order", () => {
  const turns = new FairQueue<string>({ each: 10, all: 10 });
  for (const one of ["a1", "a2", "a3", "b1", "c1", "b2"])
    expect(turns.add(of(one.charAt(0)), one)).toBe(true);
  expect(turns.next()).toBe("a1");
  turns.add(of("d"), "d1");
  expect(drain(turns)).toEqual(["b1", "c1", "a2", "d1", "b2", "a3"]);
  expect(turns.next()).toBeUndefined();
});

test("one owner has as many as one may, all together as many as all may", () => {
  const turns = new FairQueue<string>({ each: 2, all: 3 });
  expect(["a", "a", "a"].map((owner) => turns.add(of(owner), owner))).toEqual([true, true, false]);
  expect(["b", "b", "c"].map((owner) => turns.add(of(owner), owner))).toEqual([true, false, false]);
  turns.next();
  expect([turns.add(of("a"), "a"), turns.add(of("a"), "a")]).toEqual([true, false]);
});

test("what is taken out waits no more and makes room; what does not wait is none of it", () => {
  const turns = new FairQueue<string>({ each: 2, all: 2 });
  for (const one of ["a1", "a2"]) turns.add(of("a"), one);
  turns.remove(of("a"), "a1");
  turns.remove(of("a"), "a1");
  turns.remove(of("b"), "b1");
  expect(turns.add(of("b"), "b1")).toBe(true);
  expect(turns.add(of("c"), "c1")).toBe(false);
  turns.remove(of("b"), "b1");
  expect(drain(turns)).toEqual(["a2"]);
});

test("within an organization every caller gets a turn before any gets a second one", () => {
  const turns = new FairQueue<string>({ each: 10, all: 10 });
  for (const one of ["x1", "x2", "x3", "y1"]) turns.add(of("a", one.charAt(0)), one);
  for (const one of ["z1", "z2"]) turns.add(of("b", "z"), one);
  expect(turns.size).toBe(6);
  expect(drain(turns)).toEqual(["x1", "z1", "y1", "z2", "x2", "x3"]);
  expect(turns.size).toBe(0);
});
