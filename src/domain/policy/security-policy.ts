import { clone, create } from "@bufbuild/protobuf";
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
import { fold } from "../fold.ts";

/** What a new security policy takes from its surroundings; `now` in milliseconds since 1970 UTC. */
export interface SecurityPolicyOrigin {
  readonly id: string;
  readonly organizationId: string;
  readonly now: number;
}

export function newSecurityPolicy(
  { metadata, spec }: CreateSecurityPolicyRequest,
  { id, organizationId, now }: SecurityPolicyOrigin,
): SecurityPolicy {
  const createdAt = timestampFromMs(now);
  const securityPolicy = create(SecurityPolicySchema, {
    id,
    organizationId,
    createdAt,
    updatedAt: createdAt,
  });
  if (metadata) securityPolicy.metadata = metadata;
  if (spec) securityPolicy.spec = spec;
  return securityPolicy;
}

/** The policy after an update: what is absent in the request stays. */
export function updatedSecurityPolicy(
  present: SecurityPolicy,
  { metadata, spec }: UpdateSecurityPolicyRequest,
  now: number,
): SecurityPolicy {
  const securityPolicy = clone(SecurityPolicySchema, present);
  if (metadata) securityPolicy.metadata = metadata;
  if (spec) securityPolicy.spec = spec;
  securityPolicy.updatedAt = timestampFromMs(now);
  return securityPolicy;
}

/** What `search` looks through: one folded line each for name and id. */
export function securityPolicySearchText({ id, metadata }: SecurityPolicy): string {
  return fold([metadata?.name ?? "", id].join("\n"));
}

/**
 * Refuses a policy that could not be enforced in environments: they know
 * executables only, and of effects on them to block and to log.
 *
 * @throws DomainError SECURITY_POLICY_UNASSIGNABLE for the first problem
 */
export function requireAssignable({ id, spec }: SecurityPolicy): void {
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
      "must be unset or EFFECT_ALLOW: only named executables can be held",
    );
  }
  for (const [index, { effect }] of (spec?.executables?.rules ?? []).entries()) {
    if (effect !== Effect.BLOCK && effect !== Effect.AUDIT) {
      fail(`spec.executables.rules[${index}].effect`, "must be EFFECT_BLOCK or EFFECT_AUDIT");
    }
  }
}

/** Who relies on a security policy. */
export interface SecurityPolicyUse {
  /** The organization's policies give it to new environments. */
  readonly assigned: boolean;
  /** It holds in at least one environment. */
  readonly held: boolean;
}

/** @throws DomainError IN_USE */
export function requireUnused({ assigned, held }: SecurityPolicyUse): void {
  if (assigned) {
    const message = "the organization's policies assign the security policy: set securityPolicyId to another";
    throw inUse("security policy", "organization policies", message);
  }
  if (held) {
    const message = "the security policy holds in environments: delete them first";
    throw inUse("security policy", "environment", message);
  }
}
