import { findExpiredProgramTokens, removeToken } from "../store/identity/token.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

/** Tokens removed in one run: each run is one transaction, which other writes wait for. */
const TOKENS_A_RUN = 100;

/**
 * Removes tokens of runners and environments that expired, exchange tokens among
 * them, at most 100. Those of people and service accounts stay: their owners see
 * them as expired and delete them.
 *
 * @param now milliseconds since 1970 UTC
 * @returns how many were removed
 */
export function removeExpiredTokens(store: Store, now: number): Promise<number> {
  return store.write(SYSTEM, "job/token-expiry", async (tx) => {
    const expired = await findExpiredProgramTokens(tx.db, now, TOKENS_A_RUN);
    for (const token of expired) await removeToken(tx, { organizationId: token.organization_id }, token);
    return expired.length;
  });
}

export const tokenExpiryJob: MakeJob = ({ store, settings, now }) => ({
  name: "token-expiry",
  everyMs: settings.removalInterval * 1000,
  run: () => removeExpiredTokens(store, now()),
});
