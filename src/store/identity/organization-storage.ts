import { prepared } from "../prepared.ts";
import type { Reader, Scope } from "../store.ts";
import type { WriteBackRow } from "../write-back-row.ts";
import type { OrganizationStorageTable } from "./identity-schema.ts";

const selectBytes = prepared<Pick<Scope, "organizationId">, Pick<OrganizationStorageTable, "bytes">>(
  (db, { organizationId }) =>
    db.selectFrom("organization_storage").select("bytes").where("organization_id", "=", organizationId),
);

/**
 * Returns the bytes that an organization stores, in a write including its changes so far. 0 for one
 * that was removed.
 */
export async function findStoredBytes(
  db: Reader,
  { organizationId }: Pick<Scope, "organizationId">,
): Promise<number> {
  const [row] = await selectBytes(db, { organizationId });
  return row?.bytes ?? 0;
}

/**
 * The stored bytes by organization at the first read in a commit. Read only: triggers update them.
 */
export const bytesBeforeCommit: WriteBackRow<string, number> = {
  read: (db, organizationId) => findStoredBytes(db, { organizationId }),
  write: () => Promise.reject(new Error("the bytes of an organization are counted by the engine")),
};
