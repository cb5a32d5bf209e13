import { expect, test } from "@jest/globals";
import { CallBatcher, type CallBatcherOptions } from "./call-batcher.ts";

const fulfilled = <T>(value: T) => ({ status: "fulfilled" as const, value });

/** A batcher of numbers that returns each doubled, once the test lets the call end. */
function doubling(options: Partial<CallBatcherOptions<number, number>> = {}) {
  const calls: (readonly number[])[] = [];
  const open: (() => void)[] = [];
  const began = { next: Promise.withResolvers<void>() };
  const batcher = new CallBatcher<number, number>({
    async send(entries) {
      calls.push(entries);
      began.next.resolve();
      began.next = Promise.withResolvers();
      await new Promise<void>((resolve) => open.push(resolve));
      return entries.map((entry) => fulfilled(2 * entry));
    },
    sizeOf: () => 1,
    maxEntries: 3,
    maxBytes: 100,
    ...options,
  });
  return { batcher, calls, endNext: () => open.shift()?.(), began };
}

test("what is added in one turn goes in one call, each with its own result", async () => {
  const { batcher, calls, endNext, began } = doubling();
  const results = [batcher.add(1), batcher.add(2)];
  await began.next.promise;
  endNext();
  expect(await Promise.all(results)).toEqual([2, 4]);
  expect(calls).toEqual([[1, 2]]);
});

test("what is added while a call is under way waits for its end, and goes together", async () => {
  const { batcher, calls, endNext, began } = doubling();
  const first = batcher.add(1);
  await began.next.promise;
  const later = [batcher.add(2, { mayWait: true }), batcher.add(3)];
  endNext();
  await first;
  await began.next.promise;
  endNext();
  expect(await Promise.all(later)).toEqual([4, 6]);
  expect(calls).toEqual([[1], [2, 3]]);
});

test("what may wait is sent after its time, also while a call never ends", async () => {
  const { batcher, calls, began } = doubling();
  void batcher.add(1);
  await began.next.promise;
  void batcher.add(2, { mayWait: true });
  await began.next.promise;
  expect(calls).toEqual([[1], [2]]);
});

test("a call has no more entries and bytes than it may, but one that is larger by itself", async () => {
  const { batcher, calls, began } = doubling({ sizeOf: (entry) => entry });
  const added = [60, 50, 1, 1, 1, 200].map((entry) => batcher.add(entry));
  await began.next.promise;
  expect(calls).toEqual([[60], [50, 1, 1], [1], [200]]);
  expect(added).toHaveLength(6);
});

test("a call that fails fails all of its entries, and a missing result its own", async () => {
  const failing = new CallBatcher<number, number>({
    send: async (entries) => {
      if (entries.includes(7)) throw new Error("away");
      return [fulfilled(1)];
    },
    sizeOf: () => 1,
    maxEntries: 2,
    maxBytes: 100,
  });
  const settled = await Promise.allSettled([7, 8].map((entry) => failing.add(entry)));
  expect(settled).toMatchObject(Array(2).fill({ status: "rejected", reason: { message: "away" } }));
  expect(await Promise.allSettled([1, 2].map((entry) => failing.add(entry)))).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { message: "the server gave no result for a part of a call" } },
  ]);
});
