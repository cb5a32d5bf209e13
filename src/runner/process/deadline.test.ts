import { expect, test } from "@jest/globals";
import { withTimeLimit } from "./deadline.ts";

const late = new Error("late");
const never = new AbortController().signal;
const abortOf = (signal: AbortSignal) =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(signal.reason));
  });

test("what takes too long is aborted with the reason", async () => {
  expect(await withTimeLimit(5, never, late, abortOf)).toBe(late);
});

test("what is in time is not, and what comes of it is answered", async () => {
  let seen: AbortSignal | undefined;
  const result = await withTimeLimit(10, never, late, async (signal) => {
    seen = signal;
    return 7;
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect([result, seen?.aborted]).toEqual([7, false]);
});

test("another end goes before", async () => {
  const end = new AbortController();
  const ended = withTimeLimit(60_000, end.signal, late, abortOf);
  end.abort("the other");
  expect(await ended).toBe("the other");
});

test.each([undefined, 2 ** 31])("a time of %s ms never comes", async (timeMs) => {
  await withTimeLimit(timeMs, never, late, async (signal) => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(signal.aborted).toBe(false);
  });
});
