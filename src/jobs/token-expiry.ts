import { findExpiredProgramTokens, removeToken } from "../store/identity/token.ts";
import type { Store } from "../store/store.ts";
import type { JobFactory } from "./job.ts";
import { writeInEach } from "./job-writes.ts";

/** Maximum number of tokens removed per run: other writes wait for those of their organization. */
const TOKENS_PER_RUN = 100;

/**
 * Removes the expired tokens of runners and environments, including exchange tokens,
 * at most 100 per call. Tokens of people and service accounts stay: their owners see
 * them as expired and delete them.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of tokens removed
 */
export async function removeExpiredTokens(store: Store, now: number): Promise<number> {
  const found = (await findExpiredProgramTokens(store.reader, now, TOKENS_PER_RUN)).map((token) => ({
    organizationId: token.organization_id,
  }));
  return writeInEach(store, "job/token-expiry", found, async (tx, scope) => {
    const expired = await findExpiredProgramTokens(tx.db, now, TOKENS_PER_RUN, scope.organizationId);
    for (const token of expired) await removeToken(tx, scope, token);
    return expired.length;
  });
}

/** Removes expired tokens of runners and environments. */
export const tokenExpiryJob: JobFactory = ({ store, settings, now }) => ({
  name: "token-expiry",
  everyMs: settings.removalInterval * 1000,
  run: () => removeExpiredTokens(store, now()),
});
