import { expect, test } from "@jest/globals";
import { jain, percentile, table } from "../../bench/figures.ts";

const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);

test.each([
  [hundred, 50, 50],
  [hundred, 99, 99],
  [hundred, 100, 100],
  [[7], 50, 7],
  [[3, 1, 2], 50, 2],
  [[10, 9], 99, 10],
])("a percentile is a value that was there", (values, hundredth, expected) => {
  expect(percentile(values, hundredth)).toBe(expected);
});

test.each([
  [[5, 5, 5, 5], 1],
  [[1, 0, 0, 0], 0.25],
  [[4, 2], 0.9],
])("Jain's index of %j is %d", (shares, expected) => {
  expect(jain(shares)).toBe(expected);
});

test("a table has the median, the least and the most of the rounds", () => {
  const rounds = [
    { "actions a second": 12_345.6 },
    { "actions a second": 0.01234 },
    { "actions a second": 7 },
  ];
  expect(table(rounds).at(-1)).toBe("| actions a second | 7 | 0.0123 | 12,346 |");
});
