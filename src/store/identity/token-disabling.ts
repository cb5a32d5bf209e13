import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { TokenTable } from "./identity-schema.ts";
import { TYPES } from "./token.ts";

/**
 * Disables the service account tokens that an account created, and those that its trusts gave, by id ascending. They are treated
 * like unknown ones from then on.
 * @param scope of the tokens; default all organizations
 * @returns the tokens that were not disabled before
 */
export async function disableTokensOfCreator(
  tx: WriteTransaction,
  accountId: string,
  scope?: Scope,
): Promise<TokenTable[]> {
  const tokens = await builderOf(tx.db)
    .selectFrom("token")
    .selectAll()
    .where("creator_account_id", "=", accountId)
    .where("kind", "in", ["service_account", "machine"])
    .where("disabled_at", "is", null)
    .$if(scope !== undefined, (all) => all.where("organization_id", "=", scope?.organizationId ?? ""))
    .orderBy("id")
    .execute();
  await disableTokens(tx, tokens);
  return tokens;
}

/** Disables the personal access tokens of a member of the scope's organization permanently. */
export async function disablePersonalTokens(
  tx: WriteTransaction,
  { organizationId }: Scope,
  userId: string,
): Promise<void> {
  const tokens = await builderOf(tx.db)
    .selectFrom("token")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .where("kind", "=", "personal")
    .where("subject_id", "=", userId)
    .where("disabled_at", "is", null)
    .orderBy("id")
    .execute();
  await disableTokens(tx, tokens);
}

async function disableTokens(tx: WriteTransaction, tokens: readonly TokenTable[]): Promise<void> {
  for (const { id, organization_id, kind, subject_id, body } of tokens) {
    await builderOf(tx.db).updateTable("token").set({ disabled_at: tx.now }).where("id", "=", id).execute();
    const disabledAt = new Date(tx.now).toISOString();
    tx.record({
      organizationId: organization_id,
      type: TYPES[kind],
      id,
      kind: "updated",
      before: body,
      after: JSON.stringify({ ...JSON.parse(body), disabledAt }),
      facts: { ownerId: subject_id },
    });
  }
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
