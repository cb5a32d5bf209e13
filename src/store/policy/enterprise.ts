import type { Kysely } from "kysely";
import type { Schema } from "../schema.ts";
import type { Scope, WriteTransaction } from "../store.ts";

/** Returns whether the operator marked the organization as enterprise. */
export async function findEnterprise(db: Kysely<Schema>, scope: Scope): Promise<boolean> {
  const row = await db
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
  const before = await findEnterprise(tx.db, scope);
  if (before === enterprise) return;
  await tx.db
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
