import { requireStorageQuota } from "../../domain/identity/storage-quota.ts";
import { bytesBeforeCommit, findStoredBytes } from "../../store/identity/organization-storage.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/**
 * More than the writes of one commit (8 ms) can add. An organization that is further from its quota has its bytes
 * read once per commit instead of twice per write, which took 5 % of the creation of a project.
 */
const QUOTA_MARGIN_BYTES = 1024 ** 3;

/** Reads what {@link withinQuota} needs together with other rows, once per commit. */
export async function readQuotaAhead(tx: WriteTransaction, { organizationId }: Scope): Promise<void> {
  if (tx.quotaBytes !== Number.POSITIVE_INFINITY) await tx.readWriteBack(bytesBeforeCommit, organizationId);
}

/**
 * Calls `write` and requires that the organization stays within its storage quota. When it throws, it does not undo
 * the changes: the whole write fails, or the surrounding `attempt` rolls back.
 *
 * @throws DomainError STORAGE_QUOTA_EXCEEDED
 */
export async function withinQuota<T>(
  tx: WriteTransaction,
  { organizationId }: Pick<Scope, "organizationId">,
  write: () => Promise<T>,
): Promise<T> {
  const { db, quotaBytes } = tx;
  if (quotaBytes === Number.POSITIVE_INFINITY) return write();
  if ((await tx.readWriteBack(bytesBeforeCommit, organizationId)) + QUOTA_MARGIN_BYTES < quotaBytes)
    return write();
  const before = await findStoredBytes(db, { organizationId });
  const value = await write();
  requireStorageQuota(before, await findStoredBytes(db, { organizationId }), quotaBytes);
  return value;
}
