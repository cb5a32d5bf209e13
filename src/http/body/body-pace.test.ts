import { describe, expect, test } from "@jest/globals";
import { LISTENER_LIMITS } from "../connection/listener-limits.ts";
import { measurePace } from "./body-pace.ts";

/** A body under the real limits, on a clock that the test moves. */
function begin() {
  let nowMs = 1_000;
  const pace = measurePace({ ...LISTENER_LIMITS, now: () => nowMs });
  return {
    pace,
    /** Advances the clock in steps, at this rate of bytes; returns whether the body was too slow at any step. */
    pass(seconds: number, bytesPerSecond: number, stepMs = LISTENER_LIMITS.checkIntervalMs): boolean {
      let wasTooSlow = false;
      for (let passedMs = 0; passedMs < seconds * 1_000; passedMs += stepMs) {
        nowMs += stepMs;
        if (bytesPerSecond > 0) pace.arrived((bytesPerSecond * stepMs) / 1_000);
        wasTooSlow ||= pace.isTooSlow();
      }
      return wasTooSlow;
    },
  };
}

describe("a body that brings nothing", () => {
  test("is too slow after 16 s", () => {
    const { pass } = begin();
    expect(pass(15, 0)).toBe(false);
    expect(pass(1, 0)).toBe(true);
  });

  test("is too slow 16 s after its last byte, at any rate before", () => {
    const { pass } = begin();
    expect(pass(10, 1_000_000)).toBe(false);
    expect(pass(15, 0)).toBe(true);
  });
});

describe("a slow body", () => {
  test("is tolerated for 16 s", () => {
    expect(begin().pass(16, 1)).toBe(false);
  });

  test("is too slow within 2 s after that, below 64,000 bytes per second", () => {
    const { pass } = begin();
    expect(pass(16, 63_000)).toBe(false);
    expect(pass(2, 63_000)).toBe(true);
  });

  test("is not excused by speed in the first 16 s", () => {
    const { pass } = begin();
    expect(pass(16, 10_000_000)).toBe(false);
    expect(pass(2, 1_000)).toBe(true);
  });

  test("is fast enough from 64,000 bytes per second on, for any time", () => {
    expect(begin().pass(3_600, 64_000)).toBe(false);
  });

  test("is not too slow for one late packet", () => {
    const { pass } = begin();
    expect(pass(16, 0.1)).toBe(false);
    expect(pass(1, 0)).toBe(false);
    expect(pass(1, 130_000)).toBe(false);
  });
});

describe("time in which our side takes nothing", () => {
  test("does not count as idle", () => {
    const { pace, pass } = begin();
    pass(1, 100_000);
    pace.full();
    expect(pass(600, 0)).toBe(false);
    pace.wanted();
    expect(pass(15, 0)).toBe(false);
    expect(pass(1, 0)).toBe(true);
  });

  test("does not lower the rate", () => {
    const { pace, pass } = begin();
    expect(pass(16, 64_000)).toBe(false);
    for (let round = 0; round < 100; round++) {
      expect(pass(1, 64_000)).toBe(false);
      pace.full();
      expect(pass(10, 0)).toBe(false);
      pace.wanted();
    }
  });
});

describe("time in which the server itself was suspended", () => {
  test("counts as one look at most", () => {
    const { pass } = begin();
    expect(pass(1, 1_000_000)).toBe(false);
    expect(pass(60, 0, 60_000)).toBe(false);
    expect(pass(14, 0)).toBe(false);
    expect(pass(2, 0)).toBe(true);
  });
});
