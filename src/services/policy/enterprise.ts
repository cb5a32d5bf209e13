import { withoutEnterprise } from "../../domain/policy/policy-update.ts";
import { updateEnterprise } from "../../store/policy/enterprise.ts";
import { findSetPolicies, updatePolicies } from "../../store/policy/organization-policies.ts";
import { OPERATOR, type Scope, type Store, type WriteTransaction, within } from "../../store/store.ts";

/**
 * Marks an organization as enterprise, or removes the mark together with the policies
 * that only enterprise organizations have.
 */
export function setEnterprise(store: Store, scope: Scope, enterprise: boolean): Promise<void> {
  const change = async (tx: WriteTransaction) => {
    await updateEnterprise(tx, scope, enterprise);
    if (enterprise) return;
    const before = await findSetPolicies(tx.db, scope);
    await updatePolicies(tx, scope, before, withoutEnterprise(before));
  };
  return store.write(OPERATOR, "chartroom organization enterprise", change, within(scope));
}
