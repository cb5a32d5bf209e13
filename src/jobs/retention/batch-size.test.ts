import { describe, expect, test } from "@jest/globals";
import { BatchSize } from "./batch-size.ts";

describe("the size of the next write", () => {
  test("doubles after short ones, up to the most, and stays where one took most of the time", () => {
    const size = new BatchSize();
    expect(size.of(100)).toBe(25);
    size.took(4.9);
    expect(size.of(100)).toBe(50);
    size.took(5);
    size.took(10);
    expect(size.of(100)).toBe(50);
    size.took(0);
    size.took(0);
    expect(size.of(100)).toBe(100);
  });

  test("shrinks by as much as one took too long, to one row at least, and grows again", () => {
    const size = new BatchSize();
    size.took(40);
    expect(size.of(100)).toBe(6);
    for (const ms of [5_000, 5_000]) size.took(ms);
    expect(size.of(100)).toBe(1);
    for (let writes = 0; writes < 10; writes++) size.took(1);
    expect(size.of(100)).toBe(100);
  });

  test("counts the time of a write that failed", async () => {
    const size = new BatchSize();
    await expect(size.measure(() => Promise.reject(new Error("busy")))).rejects.toThrow("busy");
    expect(size.of(100)).toBe(50);
  });
});
