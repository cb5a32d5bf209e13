import { expect, test } from "@jest/globals";
import { ReadQueue } from "./request-thread.ts";

function rest(queue: ReadQueue<string>): string[] {
  const taken: string[] = [];
  for (let next = queue.next(); next !== undefined; next = queue.next()) taken.push(next);
  return taken;
}

test("callers have their turns one after the other, no matter who asks for much", () => {
  const queue = new ReadQueue<string>();
  for (const name of ["a1", "a2", "a3", "a4"]) queue.add("a", 16, name);
  queue.add("b", 1, "b1");
  queue.add("c", 1, "c1");
  queue.add("b", 1, "b2");
  expect(rest(queue)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
});

test("the smallest of a caller comes first, and equal ones in their order", () => {
  const queue = new ReadQueue<string>();
  for (const [bytes, name] of [
    [3, "large"],
    [1, "small"],
    [2, "middle"],
    [1, "small too"],
  ] as const) {
    queue.add("a", bytes, name);
  }
  expect(rest(queue)).toEqual(["small", "small too", "middle", "large"]);
});

test("a caller that comes again while others wait is behind them", () => {
  const queue = new ReadQueue<string>();
  queue.add("a", 1, "a1");
  queue.add("b", 1, "b1");
  expect(queue.next()).toBe("a1");
  queue.add("a", 1, "a2");
  expect(rest(queue)).toEqual(["b1", "a2"]);
});

test("what is dropped has no turn, and dropping it late or twice does nothing", () => {
  const queue = new ReadQueue<string>();
  const dropOnly = queue.add("a", 1, "a1");
  const drop = queue.add("b", 1, "b1");
  queue.add("b", 2, "b2");
  dropOnly();
  dropOnly();
  drop();
  expect(queue.next()).toBe("b2");
  queue.add("a", 1, "a2");
  dropOnly();
  drop();
  expect(rest(queue)).toEqual(["a2"]);
});
