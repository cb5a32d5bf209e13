import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Caller, Role } from "./caller.ts";
import { changedPermission, requireOwnershipFor, requireSameGrant } from "./ownership.ts";

const OPERATION = "service.v1.ProjectService/UpdateProject";

function callerIn(role: Role): Caller {
  const subject = create(SubjectSchema, { id: "caller", principal: Principal.USER });
  return { organizationId: "organization", subject, role, accountId: "", tokenId: "", readOnly: false };
}

const OWN = { id: "caller", principal: Principal.USER };
const OTHER = { id: "other", principal: Principal.USER };

test("an administrator may act on any resource, a member on its own", () => {
  expect(() => requireOwnershipFor(OPERATION, callerIn("administrator"), OTHER)).not.toThrow();
  expect(() => requireOwnershipFor(OPERATION, callerIn("member"), OTHER, OWN)).not.toThrow();
  for (const owners of [[], [undefined], [OTHER], [{ ...OWN, principal: Principal.RUNNER }]]) {
    expect(() => requireOwnershipFor(OPERATION, callerIn("member"), ...owners)).toThrow(
      "reaches only what is the caller's own",
    );
  }
});

test("a grant that changed since authentication is not used", () => {
  const [administrator, member] = [callerIn("administrator"), callerIn("member")];
  expect(changedPermission(administrator, administrator, OPERATION)).toBeUndefined();
  expect(changedPermission(administrator, member, OPERATION)).toBe("update_project");
  expect(() => requireSameGrant(member, member, OPERATION)).not.toThrow();
  expect(() => requireSameGrant(administrator, member, OPERATION)).toThrow("update_project has changed");
});
