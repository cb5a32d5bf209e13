import { findExpiredProgramTokens, removeToken } from "../store/identity/token.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Maximum number of tokens removed per run. A run is one transaction, which other writes wait for. */
const TOKENS_PER_RUN = 100;

/**
 * Removes the expired tokens of runners and environments, including exchange tokens,
 * at most 100 per call. Tokens of people and service accounts stay: their owners see
 * them as expired and delete them.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of tokens removed
 */
export function removeExpiredTokens(store: Store, now: number): Promise<number> {
  return store.write(SYSTEM, "job/token-expiry", async (tx) => {
    const expired = await findExpiredProgramTokens(tx.db, now, TOKENS_PER_RUN);
    for (const token of expired) await removeToken(tx, { organizationId: token.organization_id }, token);
    return expired.length;
  });
}

/** Removes expired tokens of runners and environments. */
export const tokenExpiryJob: JobFactory = ({ store, settings, now }) => ({
  name: "token-expiry",
  everyMs: settings.removalInterval * 1000,
  run: () => removeExpiredTokens(store, now()),
});
