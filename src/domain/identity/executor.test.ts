import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import {
  isActiveServiceAccount,
  isOwnExecutor,
  requireActiveMember,
  requireActiveServiceAccount,
  requireExecutor,
  requireMayBecomeExecutor,
} from "./executor.ts";

const NOW = 1_000;
const subject = (id: string, principal: Principal) => create(SubjectSchema, { id, principal });

describe("a service account", () => {
  test.each([
    ["in force", { suspended: 0, valid_until: NOW + 1 }, true],
    ["at its end", { suspended: 0, valid_until: NOW }, false],
    ["suspended", { suspended: 1, valid_until: NOW + 1 }, false],
    ["that is gone", undefined, false],
  ])("%s may act, or not", (_, account, mayAct) => {
    expect(isActiveServiceAccount(account, NOW)).toBe(mayAct);
    const acts = () => requireActiveServiceAccount("id", account, NOW);
    if (mayAct) expect(acts).not.toThrow();
    else expect(acts).toThrow("suspended, ended or gone");
    if (!account) return;
    const becomes = () => requireMayBecomeExecutor("id", account, NOW);
    if (mayAct) expect(becomes).not.toThrow();
    else expect(becomes).toThrow("choose another executor");
  });
});

describe("a user", () => {
  const account = { blocked_at: null };

  test("acts in its present role", () => {
    const role = (number: number) => requireActiveMember("id", { role: number }, account).role;
    expect([role(OrganizationRole.ADMIN), role(OrganizationRole.MEMBER)]).toEqual([
      "administrator",
      "member",
    ]);
  });

  test("does not act when it left, or when its account is blocked or gone", () => {
    const member = { role: OrganizationRole.MEMBER };
    expect(() => requireActiveMember("id", undefined, account)).toThrow("is no member of the organization");
    expect(() => requireActiveMember("id", member, { blocked_at: NOW })).toThrow("is blocked");
    expect(() => requireActiveMember("id", member, undefined)).toThrow("is blocked");
  });
});

test("an execution without an executor cannot act", () => {
  const executor = subject("id", Principal.USER);
  expect(requireExecutor(executor)).toBe(executor);
  expect(() => requireExecutor(undefined)).toThrow("the execution has no executor");
});

describe("the executor of a workflow", () => {
  const caller = { subject: subject("caller", Principal.USER) };

  test("is the caller, or a service account that is looked up", () => {
    expect(isOwnExecutor(caller, subject("caller", Principal.USER))).toBe(true);
    expect(isOwnExecutor(caller, subject("account", Principal.SERVICE_ACCOUNT))).toBe(false);
  });

  test.each([
    ["another user", subject("other", Principal.USER)],
    ["a runner", subject("caller", Principal.RUNNER)],
    ["a service account without an id", subject("", Principal.SERVICE_ACCOUNT)],
  ])("is not %s", (_, executor) => {
    expect(() => isOwnExecutor(caller, executor)).toThrow("as the caller or as a service account");
  });
});
