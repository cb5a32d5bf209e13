import type { Policies } from "./policies.ts";
import { policyDenied } from "./policy-decision.ts";

/**
 * Requires that people become users of an organization without SCIM.
 * @param hasProvisioner whether the organization has a service account that provisions it: without one the policy has
 * no effect, since nobody could join
 * @throws DomainError POLICY_DENIED
 */
export function requireAccountCreation(policies: Policies, hasProvisioner: boolean): void {
  if (!policies.effective.restrictAccountCreationToScim || !hasProvisioner) return;
  throw policyDenied(policies, {
    fieldPath: "restrictAccountCreationToScim",
    allowed: "the users that the identity provider provisions",
  });
}
