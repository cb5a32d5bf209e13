import { expect, test } from "@jest/globals";
import { createFetchProgress } from "./preparation.ts";

test("a fetch shows its progress once in ten seconds, and none if it is quick", () => {
  const lines: object[] = [];
  let nowMs = 0;
  const log = { info: (facts: object, message: string) => void lines.push({ ...facts, message }) };
  const show = createFetchProgress(log, "/srv/w", () => nowMs);
  const at = (ms: number) => {
    nowMs = ms;
    show(`${ms} ms`);
  };
  for (const ms of [0, 9_999]) at(ms);
  expect(lines).toEqual([]);
  for (const ms of [10_000, 10_001, 19_999, 20_000]) at(ms);
  const message = "a repository is being fetched";
  expect(lines).toEqual([
    { workspace: "/srv/w", progress: "10000 ms", message },
    { workspace: "/srv/w", progress: "20000 ms", message },
  ]);
});
