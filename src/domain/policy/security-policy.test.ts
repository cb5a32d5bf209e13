import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  SecurityPolicy_Effect as Effect,
  type SecurityPolicy_SpecSchema,
  SecurityPolicySchema,
} from "#gen/service/v1/security_pb.js";
import type { DomainError } from "../error.ts";
import {
  requireSecurityPolicyAssignable,
  requireSecurityPolicyUnused,
  securityPolicySearchText,
} from "./security-policy.ts";

const policy = (spec?: MessageInitShape<typeof SecurityPolicy_SpecSchema>) =>
  create(SecurityPolicySchema, { id: "p", metadata: { name: "NO Tunnels" }, ...(spec && { spec }) });

/** Returns the field that prevents a policy from being assigned; undefined when none does. */
function wrongField(spec?: MessageInitShape<typeof SecurityPolicy_SpecSchema>): string | undefined {
  try {
    requireSecurityPolicyAssignable(policy(spec));
    return undefined;
  } catch (error) {
    const { reason, metadata } = error as DomainError;
    expect([reason, metadata.security_policy_id]).toEqual([ErrorReason.SECURITY_POLICY_UNASSIGNABLE, "p"]);
    return metadata.field;
  }
}

describe("a security policy can be assigned", () => {
  test("when it restricts nothing", () => {
    expect([wrongField(), wrongField({}), wrongField({ executables: {} })]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test("with effects on named executables that block, which alone is kept", () => {
    const effects = [Effect.UNSPECIFIED, Effect.ALLOW, Effect.BLOCK, Effect.AUDIT];
    const good = effects.filter(
      (effect) => !wrongField({ executables: { rules: [{ path: "nc", effect }] } }),
    );
    expect(good).toEqual([Effect.BLOCK]);
    const defaults = effects.filter((defaultEffect) => !wrongField({ executables: { defaultEffect } }));
    expect(defaults).toEqual([Effect.UNSPECIFIED, Effect.ALLOW]);
  });

  test("not while it speaks of ports, even without a word about them", () => {
    expect(wrongField({ ports: {} })).toBe("spec.ports");
  });

  test("not with one wrong rule among many, which is named", () => {
    const rules = [{ path: "a", effect: Effect.BLOCK }, { path: "b", effect: Effect.BLOCK }, { path: "c" }];
    expect(wrongField({ executables: { rules } })).toBe("spec.executables.rules[2].effect");
  });
});

test("a security policy in use is named with who uses it first", () => {
  const usedBy = (assigned: boolean, applied: boolean) => {
    try {
      requireSecurityPolicyUnused({ assigned, applied });
      return undefined;
    } catch (error) {
      return (error as DomainError).metadata.used_by;
    }
  };
  expect([usedBy(false, false), usedBy(true, true), usedBy(false, true)]).toEqual([
    undefined,
    "organization policies",
    "environment",
  ]);
});

test("a security policy is found by folded name and id", () => {
  expect(securityPolicySearchText(policy())).toBe("no tunnels\np");
});
