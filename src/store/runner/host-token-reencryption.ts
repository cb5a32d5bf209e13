import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import { type SealedSecrets, sealedOfRow, secretColumns } from "./host-token.ts";

/**
 * Returns up to `limit` host tokens that are sealed with a key. For the system, so without a scope.
 */
export async function findHostTokensUnderKey(
  db: Reader,
  keyId: string,
  limit: number,
): Promise<(Scope & { readonly id: string; readonly sealed: SealedSecrets })[]> {
  const rows = await builderOf(db)
    .selectFrom("host_token")
    .select(["organization_id as organizationId", "id", "key_id", "sealed_token", "sealed_refresh_token"])
    .where("key_id", "=", keyId)
    .limit(limit)
    .execute();
  return rows.map((row) => ({ organizationId: row.organizationId, id: row.id, sealed: sealedOfRow(row) }));
}

/**
 * Stores the same secrets sealed with another key. The token does not change, so nothing is
 * recorded.
 */
export async function reencryptHostTokenSecrets(
  { db }: WriteTransaction,
  id: string,
  sealed: SealedSecrets,
): Promise<void> {
  await builderOf(db).updateTable("host_token").set(secretColumns(sealed)).where("id", "=", id).execute();
}
