import type { TokenTable } from "./schema.ts";
import type { WriteTransaction } from "./store.ts";

/**
 * Disables for good the service account tokens that an account created, in all
 * organizations, by id ascending. They answer like unknown ones from then on.
 *
 * @returns the tokens that were not disabled before
 */
export async function disableTokensOfCreator(tx: WriteTransaction, accountId: string): Promise<TokenTable[]> {
  const tokens = await tx.db
    .selectFrom("token")
    .selectAll()
    .where("creator_account_id", "=", accountId)
    .where("kind", "=", "service_account")
    .where("disabled_at", "is", null)
    .orderBy("id")
    .execute();
  for (const { id, organization_id, body } of tokens) {
    await tx.db.updateTable("token").set({ disabled_at: tx.now }).where("id", "=", id).execute();
    const disabledAt = new Date(tx.now).toISOString();
    tx.record({
      organizationId: organization_id,
      type: "token",
      id,
      kind: "updated",
      before: body,
      after: JSON.stringify({ ...JSON.parse(body), disabledAt }),
    });
  }
  return tokens;
}
