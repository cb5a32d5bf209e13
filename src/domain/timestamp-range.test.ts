import { create } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "@jest/globals";
import { roundedUpMs } from "./timestamp-range.ts";

test.each([
  [0, 5_000],
  [1, 5_001],
  [1_000_000, 5_001],
  [1_000_001, 5_002],
])("a moment of 5 s and %d ns is not after %d ms", (nanos, expected) => {
  expect(roundedUpMs(create(TimestampSchema, { seconds: 5n, nanos }))).toBe(expected);
});
