import { EXCHANGE_TOKEN_VALID_MS } from "../../domain/runner/runner.ts";
import type { Keys } from "../../keys.ts";
import { findTokens, insertToken, removeToken } from "../../store/identity/token.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/**
 * Creates the token that a runner exchanges for its own, and removes earlier exchange tokens.
 *
 * @returns the token's value, which is not stored
 */
export async function replaceExchangeToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Keys,
  runnerId: string,
): Promise<string> {
  for (const older of await findTokens(tx.db, scope, "exchange", runnerId)) {
    await removeToken(tx, scope, older);
  }
  const { value, hash } = keys.mintToken("exchange");
  await insertToken(tx, scope, {
    id: tx.newId(),
    organization_id: scope.organizationId,
    kind: "exchange",
    subject_id: runnerId,
    hash,
    hmac_key_id: null,
    read_only: 0,
    expires_at: tx.now + EXCHANGE_TOKEN_VALID_MS,
    last_used_at: null,
    creator_account_id: null,
    disabled_at: null,
    body: "{}",
  });
  return value;
}
