import { ServiceAccountSchema } from "#gen/service/v1/service_account_pb.js";
import type { Caller } from "../../../domain/identity/caller.ts";
import { requireProvisioning } from "../../../domain/identity/service-account.ts";
import { findServiceAccount } from "../../../store/identity/service-account.ts";
import { fromBody } from "../../../store/json.ts";
import type { Reader, WriteTransaction } from "../../../store/store.ts";
import { requireNotRevoked } from "../../call/authenticated-caller.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { withinQuota } from "../../call/storage-quota.ts";

/** The dependencies of provisioning. */
export type ScimDependencies = Pick<ServiceDependencies, "store" | "revocationMonitor">;

/**
 * Requires that a caller may provision users and groups of its organization: a service account that administrators
 * made for this purpose.
 *
 * @throws DomainError PERMISSION_DENIED
 */
export async function requireProvisioner(db: Reader, caller: Caller): Promise<void> {
  const account =
    caller.role === "service_account" ? await findServiceAccount(db, caller, caller.subject.id) : undefined;
  requireProvisioning(account && fromBody(ServiceAccountSchema, account.body));
}

/** Runs a write of a provisioner and checks the provisioner again in it. @param operation name in the audit trail */
export function writeAsProvisioner<T>(
  { store }: ScimDependencies,
  caller: Caller,
  operation: string,
  fn: (tx: WriteTransaction) => Promise<T>,
): Promise<T> {
  const { id, principal } = caller.subject;
  const write = async (tx: WriteTransaction) => {
    await requireNotRevoked(tx, caller, operation);
    await requireProvisioner(tx.db, caller);
    return withinQuota(tx, caller, () => fn(tx));
  };
  // Accounts belong to no organization.
  return store.write({ id, principal }, operation, write, { locks: [caller.organizationId, null] });
}
