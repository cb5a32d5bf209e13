import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  CreateHostAuthenticationTokenRequestSchema,
  UpdateHostAuthenticationTokenRequestSchema,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import { hostTokenSubject, newHostToken, updatedHostToken } from "./host-token.ts";

const NOW = Date.UTC(2026, 0, 1);
const user = create(SubjectSchema, { id: "user", principal: Principal.USER });
const serviceAccount = create(SubjectSchema, { id: "robot", principal: Principal.SERVICE_ACCOUNT });

const unusable = (field: string) =>
  expect.objectContaining({ reason: ErrorReason.VALUE_UNUSABLE, metadata: { field } });

const newToken = (init: object) =>
  newHostToken(
    create(CreateHostAuthenticationTokenRequestSchema, {
      runnerId: "runner",
      host: "h",
      token: "t",
      ...init,
    }),
    user,
    "id",
    NOW,
  );

describe("the subject of a host token", () => {
  const requested = { subject: undefined, userId: "" };

  test("is the caller when nobody is named, whether a user or a service account", () => {
    expect(hostTokenSubject(requested, user)).toEqual(user);
    expect(hostTokenSubject(requested, serviceAccount)).toEqual(serviceAccount);
  });

  test("is whom the subject names, and else the deprecated user", () => {
    expect(hostTokenSubject({ ...requested, subject: serviceAccount }, user)).toEqual(serviceAccount);
    expect(hostTokenSubject({ ...requested, userId: "user" }, serviceAccount)).toEqual(user);
    expect(hostTokenSubject({ subject: user, userId: "user" }, serviceAccount)).toEqual(user);
  });

  test("is refused when the two differ, in id or in kind", () => {
    const robot = create(SubjectSchema, { id: "user", principal: Principal.SERVICE_ACCOUNT });
    for (const [subject, userId] of [
      [user, "other"],
      [robot, "user"],
    ] as const) {
      expect(() => hostTokenSubject({ subject, userId }, user)).toThrow(unusable("userId"));
    }
  });

  test("is neither a runner nor an environment nor an account, named or calling", () => {
    for (const principal of [
      Principal.UNSPECIFIED,
      Principal.ACCOUNT,
      Principal.RUNNER,
      Principal.ENVIRONMENT,
      Principal.RUNNER_MANAGER,
    ]) {
      const subject = create(SubjectSchema, { id: "x", principal });
      expect(() => hostTokenSubject({ ...requested, subject }, user)).toThrow(unusable("subject.principal"));
      expect(() => hostTokenSubject(requested, subject)).toThrow(unusable("subject.principal"));
    }
  });
});

describe("the expiry of a host token", () => {
  const update = (expiresAt: { seconds: bigint; nanos: number }) =>
    updatedHostToken(newToken({}), create(UpdateHostAuthenticationTokenRequestSchema, { expiresAt }), NOW);

  test("is a time to come", () => {
    expect(newToken({ expiresAt: timestampFromMs(NOW + 1) }).expiresAt).toEqual(timestampFromMs(NOW + 1));
    for (const ms of [NOW, NOW - 1, 0, -1]) {
      expect(() => newToken({ expiresAt: timestampFromMs(ms) })).toThrow(unusable("expiresAt"));
    }
  });

  test.each([
    ["past the year 9999", { seconds: 253_402_300_800n, nanos: 0 }],
    ["past every number", { seconds: 2n ** 63n - 1n, nanos: 0 }],
    ["before all time", { seconds: -(2n ** 63n), nanos: 0 }],
    ["with a negative fraction", { seconds: 4_000_000_000n, nanos: -1 }],
    ["with a fraction of a second or more", { seconds: 4_000_000_000n, nanos: 1_000_000_000 }],
  ])("is refused %s, which the binary form can say and JSON cannot", (_, expiresAt) => {
    expect(() => newToken({ expiresAt })).toThrow(unusable("expiresAt"));
    expect(() => update(expiresAt)).toThrow(unusable("expiresAt"));
  });
});
