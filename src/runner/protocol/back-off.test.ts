import { expect, test } from "@jest/globals";
import { backOffMs, pause } from "./back-off.ts";

test("waits grow twofold up to half a minute", () => {
  expect([1, 2, 3, 6, 7, 8, 1_100].map((failures) => backOffMs(failures, 1))).toEqual([
    500, 1_000, 2_000, 16_000, 30_000, 30_000, 30_000,
  ]);
});

test("chance takes up to half of a wait away", () => {
  expect([backOffMs(3, 0), backOffMs(3, 0.5)]).toEqual([1_000, 1_500]);
});

test("a pause ends when its signal is aborted", async () => {
  const stop = new AbortController();
  const pausing = pause(60_000, stop.signal);
  stop.abort();
  await pausing;
  await pause(60_000, stop.signal);
});
