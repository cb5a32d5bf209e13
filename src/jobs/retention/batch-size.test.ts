import { describe, expect, test } from "@jest/globals";
import { BatchSize, BatchSizes, portionOf } from "./batch-size.ts";

describe("the size of the next write", () => {
  test("grows by a quarter after short ones, up to the most, and stays where one took most of the time", () => {
    const size = new BatchSize();
    expect(size.of(1_000)).toBe(125);
    size.took(2.4);
    expect(size.of(1_000)).toBe(156);
    size.took(2.5);
    size.took(5);
    expect(size.of(1_000)).toBe(156);
    for (let writes = 0; writes < 10; writes++) size.took(0);
    expect(size.of(1_000)).toBe(1_000);
  });

  test("is half after one that took too long, and less after one that took much too long, to one row at least", () => {
    const size = new BatchSize();
    size.took(5.1);
    expect(size.of(1_000)).toBe(62);
    size.took(50);
    expect(size.of(1_000)).toBe(6);
    for (const ms of [5_000, 5_000]) size.took(ms);
    expect(size.of(100)).toBe(1);
    for (let writes = 0; writes < 40; writes++) size.took(1);
    expect(size.of(100)).toBe(100);
  });

  test("counts the time of a write that failed", async () => {
    const size = new BatchSize();
    await expect(size.measure(() => Promise.reject(new Error("busy")))).rejects.toThrow("busy");
    expect(size.of(1_000)).toBe(156);
  });

  test("is one of its own for each kind of row", () => {
    const sizes = new BatchSizes();
    sizes.of("step_log").took(50);
    expect(sizes.of("step_log").of(1_000)).toBe(12);
    expect(sizes.of("workflow_action").of(1_000)).toBe(125);
  });
});

test("a portion has as many as may go together, and at least one, however large it is", () => {
  const most = { count: 3, sum: 10 };
  expect(portionOf([1, 1, 1, 1], most)).toBe(3);
  expect(portionOf([1, 1], most)).toBe(2);
  expect(portionOf([5, 5, 1], most)).toBe(2);
  expect(portionOf([11, 1], most)).toBe(1);
  expect(portionOf([], most)).toBe(0);
});
