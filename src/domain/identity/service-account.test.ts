import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { CreateServiceAccountRequestSchema } from "#gen/service/v1/service_account_service_pb.js";
import { isServiceAccountSuspended, newServiceAccount, newServiceAccountToken } from "./service-account.ts";

const NOW = Date.UTC(2026, 0, 1);
const DAY_MS = 24 * 3600 * 1000;
const creator = create(SubjectSchema, { id: "maker", principal: Principal.USER });
const origin = { id: "robot", organizationId: "home", creator, now: NOW };

const madeUntil = (seconds: number, nanos: number) =>
  newServiceAccount(
    create(CreateServiceAccountRequestSchema, {
      name: "robot",
      validUntil: { seconds: BigInt(seconds), nanos },
    }),
    origin,
  );

describe("a new service account", () => {
  test("holds until the instant that was asked for, to the nanosecond in what it says", () => {
    const { serviceAccount, validUntilMs } = madeUntil(NOW / 1000 + 1, 1);
    expect(serviceAccount.validUntil).toMatchObject({ seconds: BigInt(NOW / 1000 + 1), nanos: 1 });
    // Validity ends at a whole millisecond: the one that contains the instant still counts.
    expect(validUntilMs).toBe(NOW + 1001);
    expect(serviceAccount.suspended).toBe(false);
  });

  test("is refused when its time is now, past or unset", () => {
    expect(() => madeUntil(NOW / 1000, 0)).toThrow("validUntil must be in the future");
    expect(() => madeUntil(NOW / 1000 - 1, 999_999_999)).toThrow("validUntil must be in the future");
    const unset = create(CreateServiceAccountRequestSchema, { name: "robot" });
    expect(() => newServiceAccount(unset, origin)).toThrow("validUntil must be in the future");
  });

  test("is suspended from the end of its validity on", () => {
    expect([
      isServiceAccountSuspended(NOW + 1, NOW),
      isServiceAccountSuspended(NOW, NOW),
      isServiceAccountSuspended(NOW - 1, NOW),
    ]).toEqual([false, true, true]);
  });
});

describe("a new token of a service account", () => {
  const made = (validForMs: number, validUntilMs = NOW + 1000 * DAY_MS) =>
    newServiceAccountToken(
      { serviceAccountId: "robot", description: "", validForMs, creator },
      validUntilMs,
      { id: "token", now: NOW },
    );

  test("holds 30 days unless another time is asked for", () => {
    expect(made(0).expiresAtMs).toBe(NOW + 30 * DAY_MS);
    expect(made(1).expiresAtMs).toBe(NOW + 1);
    expect(made(1).token.expiresAt).toEqual(timestampFromMs(NOW + 1));
  });

  test("ends with its service account at the latest", () => {
    expect(made(0, NOW + DAY_MS).expiresAtMs).toBe(NOW + DAY_MS);
    expect(made(2 * DAY_MS, NOW + DAY_MS).expiresAtMs).toBe(NOW + DAY_MS);
  });

  test("is refused once its service account is suspended", () => {
    expect(() => made(0, NOW)).toThrow("the service account is suspended");
  });
});
