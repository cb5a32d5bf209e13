import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

/** Returns whether the operator marked the organization as enterprise. */
export async function isEnterprise(db: Reader, scope: Scope): Promise<boolean> {
  const row = await builderOf(db)
    .selectFrom("organization")
    .select("enterprise")
    .where("id", "=", scope.organizationId)
    .executeTakeFirst();
  return row?.enterprise === 1;
}

/** Sets the enterprise mark; an equal value is no change. */
export async function updateEnterprise(
  tx: WriteTransaction,
  scope: Scope,
  enterprise: boolean,
): Promise<void> {
  const before = await isEnterprise(tx.db, scope);
  if (before === enterprise) return;
  await builderOf(tx.db)
    .updateTable("organization")
    .set({ enterprise: enterprise ? 1 : 0, updated_at: tx.now })
    .where("id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "organization",
    id: scope.organizationId,
    kind: "updated",
    before: JSON.stringify({ enterprise: before }),
    after: JSON.stringify({ enterprise }),
  });
}
