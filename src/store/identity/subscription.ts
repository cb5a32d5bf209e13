import { builderOf } from "../query-builder.ts";
import type { WriteTransaction } from "../store.ts";
import type { SubscriptionTable } from "./identity-schema.ts";

/**
 * Adds a subscription to an account. It belongs to no organization, so the installation's chain
 * records it.
 */
export async function insertSubscription(
  tx: WriteTransaction,
  { id, account_id, name }: Pick<SubscriptionTable, "id" | "account_id" | "name">,
): Promise<void> {
  const row = { id, account_id, name, created_at: tx.now, cancelled_at: null };
  await builderOf(tx.db).insertInto("subscription").values(row).execute();
  tx.record({
    organizationId: null,
    type: "subscription",
    id,
    kind: "created",
    after: subscriptionBody(row),
  });
}

/**
 * Cancels every active subscription of an account.
 * @returns their number
 */
export async function cancelSubscriptions(tx: WriteTransaction, accountId: string): Promise<number> {
  const cancelled = await builderOf(tx.db)
    .updateTable("subscription")
    .set({ cancelled_at: tx.now })
    .where("account_id", "=", accountId)
    .where("cancelled_at", "is", null)
    .returningAll()
    .execute();
  for (const row of cancelled.toSorted((one, other) => (one.id < other.id ? -1 : 1))) {
    tx.record({
      organizationId: null,
      type: "subscription",
      id: row.id,
      kind: "updated",
      before: subscriptionBody({ ...row, cancelled_at: null }),
      after: subscriptionBody(row),
    });
  }
  return cancelled.length;
}

function subscriptionBody({ account_id, name, cancelled_at }: SubscriptionTable): string {
  const cancelledAt = cancelled_at === null ? {} : { cancelledAt: new Date(cancelled_at).toISOString() };
  return JSON.stringify({ accountId: account_id, name, ...cancelledAt });
}
