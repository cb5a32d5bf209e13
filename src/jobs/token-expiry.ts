import { type Store, SYSTEM } from "../store/store.ts";
import { findExpiredExchangeTokens, removeToken } from "../store/token.ts";

/** Tokens removed in one run: each run is one transaction, which other writes wait for. */
const TOKENS_A_RUN = 100;

/**
 * Removes exchange tokens that expired unused, at most 100 of them. Personal
 * access tokens stay: their users see them as expired and delete them.
 *
 * @param now milliseconds since 1970 UTC
 * @returns how many were removed
 */
export function removeExpiredTokens(store: Store, now: number): Promise<number> {
  return store.write(SYSTEM, "job/token-expiry", async (tx) => {
    const expired = await findExpiredExchangeTokens(tx.db, now, TOKENS_A_RUN);
    for (const token of expired) await removeToken(tx, { organizationId: token.organization_id }, token);
    return expired.length;
  });
}
