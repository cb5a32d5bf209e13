import { expect, test } from "@jest/globals";
import { Mutex } from "./mutex.ts";

test("work runs one after the other in the order of the calls, also after a failure", async () => {
  const mutex = new Mutex();
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const runs = [
    mutex.run(async () => {
      order.push("first begins");
      await first.promise;
      order.push("first fails");
      throw new Error("failed");
    }),
    mutex.run(async () => void order.push("second")),
    mutex.run(async () => void order.push("third")),
  ];
  first.resolve();
  const results = await Promise.allSettled(runs);
  expect(order).toEqual(["first begins", "first fails", "second", "third"]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
});

test("work that is aborted while it waits never runs, and what waits behind it runs in its turn", async () => {
  const mutex = new Mutex();
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const running = mutex.run(async () => {
    await first.promise;
    order.push("first");
  });
  const waiting = new AbortController();
  const aborted = mutex.run(async () => void order.push("aborted"), waiting.signal);
  const last = mutex.run(async () => void order.push("last"));
  waiting.abort(new Error("the lease is lost"));
  await expect(aborted).rejects.toThrow("the lease is lost");
  expect(order).toEqual([]);
  first.resolve();
  await Promise.all([running, last]);
  expect(order).toEqual(["first", "last"]);
});
