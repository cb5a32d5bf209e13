import { endsSoon, TOKEN_WARNING_MS, WARNED_KINDS } from "../../domain/identity/token-end.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { TokenTable } from "./identity-schema.ts";
import { TYPES } from "./token.ts";

/**
 * Returns up to `limit` tokens of people and service accounts that are in their last 7 days at `now` and whose end was
 * not announced. For the system, so without a scope.
 * @param organizationId of the tokens; default any
 */
export async function findTokensToWarnOf(
  db: Reader,
  now: number,
  limit: number,
  organizationId?: string,
): Promise<TokenTable[]> {
  return builderOf(db)
    .selectFrom("token")
    .selectAll()
    .where("kind", "in", WARNED_KINDS)
    .where("expires_at", ">", now)
    .where("expires_at", "<=", now + TOKEN_WARNING_MS)
    .where("warned_at", "is", null)
    .where("disabled_at", "is", null)
    .$if(organizationId !== undefined, (tokens) =>
      tokens.where("organization_id", "=", organizationId as string),
    )
    .orderBy("id")
    .limit(limit)
    .execute();
}

/** Records that a token expires soon; its owner receives this as an event. */
export async function recordTokenWarning(
  tx: WriteTransaction,
  scope: Scope,
  token: TokenTable,
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("token")
    .set({ warned_at: tx.now })
    .where("id", "=", token.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  const after = { ...JSON.parse(token.body), endAnnouncedAt: new Date(tx.now).toISOString() };
  recordUpdate(tx, scope, token, JSON.stringify(after));
}

/** Changes the expiry of a token, and its body, which contains it. */
export async function updateTokenEnd(
  tx: WriteTransaction,
  scope: Scope,
  token: TokenTable,
  { expiresAt, body }: { readonly expiresAt: number; readonly body: string },
): Promise<void> {
  await builderOf(tx.db)
    .updateTable("token")
    .set({ expires_at: expiresAt, body, warned_at: endsSoon(expiresAt, tx.now) ? tx.now : null })
    .where("id", "=", token.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  recordUpdate(tx, scope, token, body);
}

function recordUpdate(tx: WriteTransaction, scope: Scope, token: TokenTable, after: string): void {
  tx.record({
    organizationId: scope.organizationId,
    type: TYPES[token.kind],
    id: token.id,
    kind: "updated",
    before: token.body,
    after,
    facts: { ownerId: token.subject_id },
  });
}
