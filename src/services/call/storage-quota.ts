import { requireStorageQuota } from "../../domain/identity/storage-quota.ts";
import { bytesBeforeCommit, findStoredBytes } from "../../store/identity/organization-storage.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/**
 * More than the writes of one commit, of 8 ms, can add. An organization that is
 * further from its quota is asked for its bytes once a commit instead of twice a
 * write, which was a twentieth of what creating a project costs.
 */
const FAR_BYTES = 1024 ** 3;

/**
 * Does a part of a write that may make its organization store more. When it
 * throws, what the part did is still there: the write fails, or is taken back by
 * the `attempt` around it.
 *
 * @throws DomainError STORAGE_QUOTA_EXCEEDED
 */
export async function withinQuota<T>(
  tx: WriteTransaction,
  { organizationId }: Pick<Scope, "organizationId">,
  part: () => Promise<T>,
): Promise<T> {
  const { db, quotaBytes } = tx;
  if (quotaBytes === Number.POSITIVE_INFINITY) return part();
  if ((await tx.readHeld(bytesBeforeCommit, organizationId)) + FAR_BYTES < quotaBytes) return part();
  const before = await findStoredBytes(db, { organizationId });
  const value = await part();
  requireStorageQuota(before, await findStoredBytes(db, { organizationId }), quotaBytes);
  return value;
}
