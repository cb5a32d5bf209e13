import { builderOf } from "../query-builder.ts";
import type { Reader, WriteTransaction } from "../store.ts";
import type { TokenTable } from "./identity-schema.ts";

/**
 * Disables the service account tokens that an account created, in all organizations, by id
 * ascending. They are treated like unknown ones from then on.
 * @returns the tokens that were not disabled before
 */
export async function disableTokensOfCreator(tx: WriteTransaction, accountId: string): Promise<TokenTable[]> {
  const tokens = await builderOf(tx.db)
    .selectFrom("token")
    .selectAll()
    .where("creator_account_id", "=", accountId)
    .where("kind", "=", "service_account")
    .where("disabled_at", "is", null)
    .orderBy("id")
    .execute();
  for (const { id, organization_id, subject_id, body } of tokens) {
    await builderOf(tx.db).updateTable("token").set({ disabled_at: tx.now }).where("id", "=", id).execute();
    const disabledAt = new Date(tx.now).toISOString();
    tx.record({
      organizationId: organization_id,
      type: "service_account_token",
      id,
      kind: "updated",
      before: body,
      after: JSON.stringify({ ...JSON.parse(body), disabledAt }),
      facts: { ownerId: subject_id },
    });
  }
  return tokens;
}

/** Returns those of the named tokens that belong to one of the organizations. */
export async function findTokenIdsIn(
  db: Reader,
  organizationIds: readonly string[],
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (organizationIds.length === 0 || ids.length === 0) return new Set();
  const rows = await builderOf(db)
    .selectFrom("token")
    .select("id")
    .where("organization_id", "in", organizationIds)
    .where("id", "in", ids)
    .execute();
  return new Set(rows.map(({ id }) => id));
}
