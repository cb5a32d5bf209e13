import { create } from "@bufbuild/protobuf";
import { DurationSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { newPersonalToken, requireOwnUserId, validForMs } from "./personal-token.ts";

const NOW = Date.UTC(2026, 0, 1);
const DAY_MS = 24 * 3600 * 1000;
const template = { userId: "me", description: "laptop", readOnly: false };

describe("how long a personal access token holds", () => {
  test.each([
    ["30 days when nothing is said", 0, 30 * DAY_MS],
    ["as long as is said", 1, 1],
    ["90 days at most", 90 * DAY_MS, 90 * DAY_MS],
  ])("is %s", (_, requested, expected) => {
    const { token, expiresAtMs } = newPersonalToken({ ...template, validForMs: requested }, "id", NOW);
    expect(expiresAtMs).toBe(NOW + expected);
    expect(token.expiresAt).toEqual(timestampFromMs(NOW + expected));
  });

  test.each([90 * DAY_MS + 1, -1, Number.NaN])("is never %d ms", (requested) => {
    expect(() => newPersonalToken({ ...template, validForMs: requested }, "id", NOW)).toThrow(
      expect.objectContaining({ reason: ErrorReason.VALUE_UNUSABLE }),
    );
  });

  test("is read from a duration without losing the shortest", () => {
    expect(validForMs(undefined)).toBe(0);
    expect(validForMs(create(DurationSchema, { seconds: 0n, nanos: 1 }))).toBe(1);
    expect(validForMs(create(DurationSchema, { seconds: 7_776_000n }))).toBe(90 * DAY_MS);
  });
});

describe("the user of a new token", () => {
  test("is the caller, named or not, and nobody else", () => {
    expect(requireOwnUserId("", "me")).toBe("me");
    expect(requireOwnUserId("me", "me")).toBe("me");
    expect(() => requireOwnUserId("you", "me")).toThrow(
      expect.objectContaining({ reason: ErrorReason.PERMISSION_DENIED }),
    );
  });
});
