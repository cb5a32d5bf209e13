import { expect, test } from "@jest/globals";
import { fittingGroups } from "./scim-group.ts";

test.each<[readonly number[], number]>([
  [[], 0],
  [[10_000], 1],
  [[10_001, 0], 1],
  [[9_999, 1, 0], 3],
  [[9_999, 2, 0], 1],
  [[0, 10_000, 1], 2],
])("of groups with %j members %d are on one page", (counts, groups) => {
  expect(fittingGroups(counts)).toBe(groups);
});
