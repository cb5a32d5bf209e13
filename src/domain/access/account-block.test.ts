import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { EnvironmentPhase, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { isStoppedByBlock, requireAdministratorOfAccount, requireOtherAccount } from "./account-block.ts";

const { ADMIN, MEMBER } = OrganizationRole;
const caller = { organizationId: "harbour" };
const as = (role: OrganizationRole, ...organizationIds: string[]) =>
  organizationIds.map((organizationId) => ({ organizationId, role, suspendedAt: null }));

describe("whether an account may be blocked by a caller", () => {
  const refusal = (own: ReturnType<typeof as>, target: ReturnType<typeof as>): unknown => {
    try {
      requireAdministratorOfAccount(caller, own, target);
      return undefined;
    } catch (error) {
      return error;
    }
  };

  test("an administrator of every organization of the account may", () => {
    const own = as(ADMIN, "harbour", "island", "lagoon");
    expect(refusal(own, as(MEMBER, "harbour"))).toBeUndefined();
    expect(refusal(own, as(ADMIN, "harbour", "island"))).toBeUndefined();
  });

  test("an administrator of some of them lacks block_account", () => {
    const denied = { reason: ErrorReason.PERMISSION_DENIED, metadata: { permission: "block_account" } };
    const target = as(MEMBER, "harbour", "island");
    expect(refusal(as(ADMIN, "harbour"), target)).toMatchObject(denied);
    expect(refusal([...as(ADMIN, "harbour"), ...as(MEMBER, "island")], target)).toMatchObject(denied);
    expect(refusal(as(MEMBER, "harbour", "island"), target)).toMatchObject(denied);
    expect(refusal([], target)).toMatchObject(denied);
  });

  test("an account outside the caller's organization is not found, whatever the caller is elsewhere", () => {
    const own = as(ADMIN, "harbour", "island");
    for (const target of [as(MEMBER, "island"), as(MEMBER, "lagoon"), []]) {
      expect(refusal(own, target)).toMatchObject({
        reason: ErrorReason.NOT_FOUND,
        message: "account not found",
      });
    }
  });

  test("nobody blocks the own account", () => {
    expect(() => requireOtherAccount({ accountId: "a" }, "a")).toThrow("your own account");
    expect(() => requireOtherAccount({ accountId: "a" }, "b")).not.toThrow();
  });
});

describe("an environment stops with its creator", () => {
  const stops = (phase: EnvironmentPhase, desiredPhase: EnvironmentPhase) =>
    isStoppedByBlock(create(EnvironmentSchema, { spec: { desiredPhase }, status: { phase } }));
  const { CREATING, STARTING, RUNNING, UPDATING, STOPPING, STOPPED, DELETING, DELETED } = EnvironmentPhase;

  test.each([CREATING, STARTING, RUNNING, UPDATING])("in phase %i, or when that is desired", (phase) => {
    expect(stops(phase, STOPPED)).toBe(true);
    expect(stops(STOPPED, phase)).toBe(true);
    expect(stops(phase, RUNNING)).toBe(true);
  });

  test.each([STOPPING, STOPPED, DELETING, DELETED])("but not in phase %i once it is to stop", (phase) => {
    expect(stops(phase, STOPPED)).toBe(false);
  });

  test("and one pending deletion is left to that", () => {
    expect(stops(RUNNING, DELETED)).toBe(false);
  });
});
