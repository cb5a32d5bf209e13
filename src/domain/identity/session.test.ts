import { describe, expect, test } from "@jest/globals";
import { hasSessionEnded, newSession, SESSION_IDLE_MS, SESSION_VALID_MS } from "./session.ts";

const BEGAN = Date.UTC(2026, 0, 1);
const ID = "0190c0de-0000-7000-8000-000000000000";

describe("a session", () => {
  test.each([
    ["12 hours after its last use", BEGAN + SESSION_VALID_MS, BEGAN, BEGAN + SESSION_IDLE_MS],
    ["at its end", BEGAN + 1_000, BEGAN + 999, BEGAN + 1_000],
  ])("ends %s, and not a moment earlier", (_, expiresAt, lastUsedAt, end) => {
    const ended = [-1, 0, 1].map((ms) => hasSessionEnded(expiresAt, lastUsedAt, end + ms));
    expect(ended).toEqual([false, true, true]);
  });

  test.each([
    ["7 days", undefined, BEGAN + SESSION_VALID_MS],
    ["the rest of its token", BEGAN + 1_000, BEGAN + 1_000],
    ["7 days of a longer token", BEGAN + SESSION_VALID_MS + 1, BEGAN + SESSION_VALID_MS],
  ])("holds for %s at most", (_, endsAt, expected) => {
    const { session, expiresAtMs } = newSession({ userId: ID, readOnly: true, endsAt }, ID, BEGAN);
    expect([expiresAtMs, session.readOnly]).toEqual([expected, true]);
  });
});
