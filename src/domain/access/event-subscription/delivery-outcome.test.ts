import { describe, expect, test } from "@jest/globals";
import { nextAttemptAt, PAUSE_AFTER_MS, pauseReason, RETRY_DELAYS_MS } from "./delivery-outcome.ts";

describe("a delivery that failed", () => {
  test("is tried again by the table, a fifth earlier or later by chance", () => {
    expect(nextAttemptAt(1, {}, 1_000, 0)).toBe(5_000);
    expect(nextAttemptAt(1, {}, 1_000, 0.5)).toBe(6_000);
    expect(nextAttemptAt(1, {}, 1_000, 0.999_999)).toBe(7_000);
    expect(nextAttemptAt(8, {}, 0, 0.5)).toBe(4 * 3_600_000);
  });

  test("is tried no earlier than the target asks for", () => {
    expect(nextAttemptAt(1, { retryAfterMs: 4_999 }, 1_000, 0.5)).toBe(6_000);
    expect(nextAttemptAt(1, { retryAfterMs: 5_001 }, 1_000, 0.5)).toBe(6_001);
    expect(nextAttemptAt(9, { retryAfterMs: 5_001 }, 1_000, 0.5)).toBeUndefined();
  });

  test("is given up after nine attempts", () => {
    expect(RETRY_DELAYS_MS).toHaveLength(8);
    expect(nextAttemptAt(9, {}, 0, 0.5)).toBeUndefined();
  });
});

describe("a subscription whose target fails", () => {
  test("is paused after a day without success", () => {
    const failed = { statusCode: 500 };
    expect(pauseReason(failed, 0, PAUSE_AFTER_MS - 1)).toBeUndefined();
    expect(pauseReason(failed, 0, PAUSE_AFTER_MS)).toMatch("24 hours");
  });

  test("is paused at once when the target is gone", () => {
    expect(pauseReason({ statusCode: 410 }, 0, 0)).toMatch("410");
    expect(pauseReason({ statusCode: 404 }, 0, 0)).toBeUndefined();
  });
});
