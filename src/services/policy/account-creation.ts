import { requireAccountCreation } from "../../domain/policy/account-creation.ts";
import { hasProvisioner } from "../../store/identity/service-account.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/**
 * Requires that people become users of the scope's organization without SCIM: by an invite, or at their first sign-in.
 *
 * @throws DomainError POLICY_DENIED
 */
export async function requireAccountCreationAllowed(tx: WriteTransaction, scope: Scope): Promise<void> {
  const policies = await findPolicies(tx.db, scope);
  if (!policies.effective.restrictAccountCreationToScim) return;
  requireAccountCreation(policies, await hasProvisioner(tx.db, scope, tx.now));
}
