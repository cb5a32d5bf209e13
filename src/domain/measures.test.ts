import { expect, test } from "@jest/globals";
import { Histogram } from "./measures.ts";

test("a value at a bound is in its bucket, one above in the next", () => {
  const histogram = new Histogram([1, 2]);
  for (const value of [0, 1, 1.001, 2, 2.001, 1_000]) histogram.record(value);
  expect(histogram.counts).toEqual([2, 2, 2]);
  expect(histogram.count).toBe(6);
  expect(histogram.sum).toBeCloseTo(1_006.002);
});
