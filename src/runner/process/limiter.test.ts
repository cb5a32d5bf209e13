import { expect, test } from "@jest/globals";
import { Limiter } from "./limiter.ts";

/** Work that ends when the test lets it end. */
function work(order: string[], name: string) {
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const run = async () => {
    order.push(name);
    begun.resolve();
    await end.promise;
  };
  return { run, begun: begun.promise, end };
}

test("so many run at the same time, the others in the order of their calls, also after a failure", async () => {
  const limiter = new Limiter(2);
  const order: string[] = [];
  const works = ["first", "second", "third", "fourth"].map((name) => work(order, name));
  const runs = works.map(({ run }) => limiter.run(run));
  expect(order).toEqual(["first", "second"]);
  works[1]?.end.reject(new Error("failed"));
  await expect(runs[1]).rejects.toThrow("failed");
  await works[2]?.begun;
  expect(order).toEqual(["first", "second", "third"]);
  for (const { end } of works) end.resolve();
  await Promise.allSettled(runs);
  expect(order).toEqual(["first", "second", "third", "fourth"]);
});

test("work that is aborted while it waits never runs and takes no room", async () => {
  const limiter = new Limiter(1);
  const order: string[] = [];
  const [first, aborted, last] = [work(order, "first"), work(order, "aborted"), work(order, "last")];
  const waiting = new AbortController();
  const runs = [limiter.run(first.run), limiter.run(aborted.run, waiting.signal), limiter.run(last.run)];
  waiting.abort(new Error("the lease is lost"));
  await expect(runs[1]).rejects.toThrow("the lease is lost");
  first.end.resolve();
  last.end.resolve();
  await Promise.all([runs[0], runs[2]]);
  expect(order).toEqual(["first", "last"]);
  await limiter.run(async () => void order.push("later"), waiting.signal).catch(() => undefined);
  await limiter.run(async () => void order.push("again"));
  expect(order).toEqual(["first", "last", "again"]);
});
