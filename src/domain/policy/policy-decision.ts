import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import { type PolicyDecision, PolicyDecisionSchema } from "#gen/service/v1/policy_decision_pb.js";
import { DomainError } from "../error.ts";
import { isJsonObject } from "../json-object.ts";
import type { Policies, PolicyOrigin, PolicyOrigins } from "./policies.ts";

/** The error for a request that a policy of the organization forbids. */
export class PolicyDenied extends DomainError {
  readonly decision: PolicyDecision;

  constructor(decision: PolicyDecision) {
    const { policy, fieldPath, allowed } = decision;
    super(
      ErrorReason.POLICY_DENIED,
      `the organization's policy ${fieldPath} forbids this; it allows ${allowed}`,
      { policy, field_path: fieldPath },
    );
    this.decision = decision;
  }
}

/** The denied value, and the allowed ones. */
export interface Denial {
  /** Path of the deciding field of OrganizationPolicies, in JSON names. */
  readonly fieldPath: string;
  /** The requested value; undefined when the request has no value to show. */
  readonly requested?: JsonValue;
  /** End of a sentence that begins with "it allows". */
  readonly allowed: string;
}

/** Returns the error with the value in force and its origin. */
export function policyDenied(
  { effective, origins }: Policies,
  { fieldPath, requested, allowed }: Denial,
): PolicyDenied {
  const json = toJson(OrganizationPoliciesSchema, effective, { alwaysEmitImplicit: true });
  const decision = create(PolicyDecisionSchema, {
    policy: "OrganizationPolicies",
    fieldPath,
    valueInForce: JSON.stringify(valueAt(json, fieldPath) ?? null),
    valueAsked: requested === undefined ? "" : JSON.stringify(requested),
    allowed,
  });
  const origin = originOf(origins, fieldPath);
  if (origin) {
    decision.setAt = timestampFromMs(origin.at);
    decision.setBy = create(SubjectSchema, {
      id: origin.id,
      principal: origin.principal,
    });
  }
  return new PolicyDenied(decision);
}

/** Returns the value at a dotted path of JSON names; undefined when there is none. */
export function valueAt(json: JsonValue | undefined, path: string): JsonValue | undefined {
  let value = json;
  for (const name of path.split(".")) {
    if (!isJsonObject(value)) return undefined;
    value = value[name];
  }
  return value;
}

/**
 * Returns the origin of a field. A field inside a message that was set as a whole has that
 * message's origin.
 */
function originOf(origins: PolicyOrigins, fieldPath: string): PolicyOrigin | undefined {
  const names = fieldPath.split(".");
  for (let length = names.length; length > 0; length--) {
    const origin = origins[names.slice(0, length).join(".")];
    if (origin) return origin;
  }
  return undefined;
}
