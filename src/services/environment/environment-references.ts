import type { EnvironmentSpec } from "#gen/service/v1/environment_pb.js";
import type { EnvironmentClass } from "#gen/service/v1/runner_configuration_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireSecurityPolicyAssignable } from "../../domain/policy/security-policy.ts";
import { requireClassEnabled } from "../../domain/runner/environment-class.ts";
import { findSecurityPolicy } from "../../store/policy/security-policy.ts";
import { findEnvironmentClass } from "../../store/runner/environment-class.ts";
import type { Reader, Scope } from "../../store/store.ts";

/**
 * Checks that the resources that a new environment's spec names exist in the organization.
 *
 * @returns the named environment class; undefined when there is none
 * @throws DomainError NOT_FOUND for an unknown resource; PHASE_UNSUITABLE for a disabled class;
 * SECURITY_POLICY_UNASSIGNABLE
 */
export async function checkEnvironmentReferences(
  db: Reader,
  scope: Scope,
  spec: EnvironmentSpec | undefined,
): Promise<EnvironmentClass | undefined> {
  if (spec?.securityPolicyId) {
    const securityPolicy = await findSecurityPolicy(db, scope, spec.securityPolicyId);
    if (!securityPolicy) throw notFound("security policy");
    requireSecurityPolicyAssignable(securityPolicy);
  }
  // No operation creates one yet, so none can exist. Storing the id would suggest that it has an effect.
  if (spec?.workflowActionId) throw notFound("workflow execution action");
  const classId = spec?.machine?.class;
  if (!classId) return undefined;
  const environmentClass = await findEnvironmentClass(db, scope, classId);
  if (!environmentClass) throw notFound("environment class");
  requireClassEnabled(environmentClass);
  return environmentClass;
}
