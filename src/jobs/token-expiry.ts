import { hasEndedDeviceLogins, removeEndedDeviceLogins } from "../store/identity/device-login.ts";
import { hasEndedMachineTokenUses, removeMachineTokenUses } from "../store/identity/service-account-trust.ts";
import { findExpiredProgramTokens, removeToken } from "../store/identity/token.ts";
import { findTokensToWarnOf, recordTokenWarning } from "../store/identity/token-end.ts";
import { type Store, SYSTEM } from "../store/store.ts";
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

/**
 * Announces the end of tokens of people and service accounts 7 days before it, with an event and an audit row each, at
 * most 100 per call.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of tokens announced
 */
export async function announceTokenEnds(store: Store, now: number): Promise<number> {
  const found = (await findTokensToWarnOf(store.reader, now, TOKENS_PER_RUN)).map((token) => ({
    organizationId: token.organization_id,
  }));
  return writeInEach(store, "job/token-end", found, async (tx, scope) => {
    const ending = await findTokensToWarnOf(tx.db, now, TOKENS_PER_RUN, scope.organizationId);
    for (const token of ending) await recordTokenWarning(tx, scope, token);
    return ending.length;
  });
}

/** Time for which an ended login is still reported to its device, and for which wrong codes are counted. */
const KEPT_MS = 15 * 60_000;

/** Removes the records of exchanged tokens of external issuers, once those tokens have expired. */
export async function removeOldMachineTokenUses(store: Store, now: number): Promise<void> {
  if (!(await hasEndedMachineTokenUses(store.reader, now))) return;
  await store.write(SYSTEM, "job/token-expiry", (tx) => removeMachineTokenUses(tx, now), { locks: [null] });
}

/** Removes device logins that nobody has approved, and counts of wrong codes, once they are no longer needed. */
export async function removeOldDeviceLogins(store: Store, now: number): Promise<void> {
  const before = now - KEPT_MS;
  if (!(await hasEndedDeviceLogins(store.reader, before))) return;
  await store.write(SYSTEM, "job/token-expiry", (tx) => removeEndedDeviceLogins(tx, before), {
    locks: [null],
  });
}

/** Announces the end of tokens of people and service accounts. */
export const tokenEndJob: JobFactory = ({ store, settings, now }) => ({
  name: "token-end",
  everyMs: settings.removalInterval * 1000,
  run: () => announceTokenEnds(store, now()),
});

/** Removes expired tokens of runners and environments, and ended device logins. */
export const tokenExpiryJob: JobFactory = ({ store, settings, now }) => ({
  name: "token-expiry",
  everyMs: settings.removalInterval * 1000,
  run: async () => {
    await removeOldDeviceLogins(store, now());
    await removeOldMachineTokenUses(store, now());
    return removeExpiredTokens(store, now());
  },
});
