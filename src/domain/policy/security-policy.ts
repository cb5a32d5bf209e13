import { clone, create, equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  SecurityPolicy_Effect as Effect,
  type SecurityPolicy,
  SecurityPolicySchema,
} from "#gen/service/v1/security_pb.js";
import type {
  CreateSecurityPolicyRequest,
  UpdateSecurityPolicyRequest,
} from "#gen/service/v1/security_service_pb.js";
import { DomainError, inUse } from "../error.ts";
import { setAnnotations } from "../identity/annotation/annotations.ts";
import { fold } from "../text/fold.ts";

/**
 * Values of a new security policy that the request does not contain; `now` in milliseconds since
 * 1970 UTC.
 */
export interface SecurityPolicyCreationContext {
  readonly id: string;
  readonly organizationId: string;
  readonly now: number;
}

export function newSecurityPolicy(
  req: CreateSecurityPolicyRequest,
  { id, organizationId, now }: SecurityPolicyCreationContext,
): SecurityPolicy {
  const { metadata, spec } = req;
  const createdAt = timestampFromMs(now);
  const securityPolicy = create(SecurityPolicySchema, {
    id,
    organizationId,
    createdAt,
    updatedAt: createdAt,
  });
  if (metadata) securityPolicy.metadata = metadata;
  if (spec) securityPolicy.spec = spec;
  setAnnotations(securityPolicy, req);
  return securityPolicy;
}

/**
 * Returns the policy after an update; fields that are absent in the request keep their values. Undefined when nothing
 * changes.
 */
export function updatedSecurityPolicy(
  present: SecurityPolicy,
  req: UpdateSecurityPolicyRequest,
  now: number,
): SecurityPolicy | undefined {
  const { metadata, spec } = req;
  const securityPolicy = clone(SecurityPolicySchema, present);
  if (metadata) securityPolicy.metadata = metadata;
  if (spec) securityPolicy.spec = spec;
  setAnnotations(securityPolicy, req);
  if (equals(SecurityPolicySchema, present, securityPolicy)) return undefined;
  securityPolicy.updatedAt = timestampFromMs(now);
  return securityPolicy;
}

/** Returns the text that `search` looks through: one folded line each for name and id. */
export function securityPolicySearchText({ id, metadata }: SecurityPolicy): string {
  return fold([metadata?.name ?? "", id].join("\n"));
}

/**
 * Requires that a policy can be enforced in environments. They support only rules about executables,
 * with the effect block, because no isolation class observes which programs are started.
 * @throws DomainError SECURITY_POLICY_UNASSIGNABLE for the first problem
 */
export function requireSecurityPolicyAssignable({ id, spec }: SecurityPolicy): void {
  const fail = (field: string, problem: string): never => {
    throw new DomainError(
      ErrorReason.SECURITY_POLICY_UNASSIGNABLE,
      `the security policy cannot be assigned: ${field} ${problem}`,
      { security_policy_id: id, field, problem },
    );
  };
  if (spec?.ports) fail("spec.ports", "must be unset: only executables can be controlled");
  const defaultEffect = spec?.executables?.defaultEffect ?? Effect.UNSPECIFIED;
  if (defaultEffect !== Effect.UNSPECIFIED && defaultEffect !== Effect.ALLOW) {
    fail(
      "spec.executables.defaultEffect",
      "must be unset or EFFECT_ALLOW: only named executables can be controlled",
    );
  }
  for (const [index, { effect }] of (spec?.executables?.rules ?? []).entries()) {
    if (effect !== Effect.BLOCK) {
      fail(
        `spec.executables.rules[${index}].effect`,
        "must be EFFECT_BLOCK: no isolation enforces another effect",
      );
    }
  }
}

/** The uses of a security policy. */
export interface SecurityPolicyUse {
  /** True when the organization's policies assign it to new environments. */
  readonly assigned: boolean;
  /** True when it applies in at least one environment. */
  readonly applied: boolean;
}

/**
 * Requires that a security policy is not used.
 * @throws DomainError IN_USE
 */
export function requireSecurityPolicyUnused({ assigned, applied }: SecurityPolicyUse): void {
  if (assigned) {
    const message = "the organization's policies assign the security policy: set securityPolicyId to another";
    throw inUse("security policy", "organization policies", message);
  }
  if (applied) {
    const message = "environments use the security policy: delete them first";
    throw inUse("security policy", "environment", message);
  }
}
