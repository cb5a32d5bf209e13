import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError, permissionDenied } from "../../error.ts";
import type { Caller } from "../caller.ts";

/** Time from the beginning of a device's login to its end (RFC 8628, expires_in): 15 minutes. */
export const DEVICE_LOGIN_VALID_MS = 15 * 60_000;

/** Minimum time between two polls of a device (RFC 8628, interval). Each early poll adds the same time to it. */
export const POLL_INTERVAL_MS = 5_000;

/** Maximum to which early polls raise that time. */
const MAX_INTERVAL_MS = 60_000;

/** Maximum number of open device logins of one network. */
const MAX_OPEN_IN_NETWORK = 10;

/** Maximum number of open logins of one site: it may have many networks, and could use up the total. */
const MAX_OPEN_IN_SITE = 100;

/** Maximum number of open logins of the installation: the more there are, the easier it is to guess a code. */
const MAX_OPEN = 1_000;

/** Period in which wrong codes are counted. */
export const ATTEMPTS_MS = 15 * 60_000;

/** Number of wrong codes in that period after which further codes of a person, or a network, are rejected. */
export const MAX_ATTEMPTS = { account: 10, network: 50 } as const;

const MAX_MACHINE_CHARACTERS = 64;

/** The reasons for which a poll returns no token, yet or ever: error codes of RFC 8628, 3.5. */
export type DevicePollProblem =
  | "authorization_pending"
  | "slow_down"
  | "access_denied"
  | "expired_token"
  | "invalid_grant";

/** The facts of a device's login that decide the answer to it; times in milliseconds since 1970 UTC. */
export interface DeviceLoginState {
  readonly expires_at: number;
  readonly interval_ms: number;
  readonly polled_at: number | null;
  /** The member that has decided. */
  readonly user_id: string | null;
  readonly denied: number;
}

/** Returns the answer to a device that polls at `now`: `allowed` for a token. */
export function pollOutcome(
  login: DeviceLoginState,
  now: number,
): Exclude<DevicePollProblem, "invalid_grant"> | "allowed" {
  if (login.expires_at <= now) return "expired_token";
  if (login.denied === 1) return "access_denied";
  if (login.user_id !== null) return "allowed";
  const isEarly = login.polled_at !== null && now < login.polled_at + login.interval_ms;
  return isEarly ? "slow_down" : "authorization_pending";
}

/** Returns the minimum time between two polls after an early one. */
export function slowerInterval({ interval_ms }: Pick<DeviceLoginState, "interval_ms">): number {
  return Math.min(interval_ms + POLL_INTERVAL_MS, MAX_INTERVAL_MS);
}

/** The first 48 bits of a network of IPv6, or the first 24 of an IPv4 address: one sender may have all of the rest. */
const SITE = /^(?:(?:[0-9a-f]+:){3}(?=[0-9a-f]+::\/64$)|(?:\d+\.){3}(?=\d+$))/i;

/** Returns the common prefix of all networks of a site; undefined for a network of another form, which is its own site. */
export function siteOf(network: string): string | undefined {
  return SITE.exec(network)?.[0];
}

/** Returns whether another login may begin while these are open: `full` if only after another one is removed. */
export function roomForLogin(
  open: Readonly<Record<"ofNetwork" | "ofSite" | "all", number>>,
): "some" | "full" | "none" {
  if (open.ofNetwork >= MAX_OPEN_IN_NETWORK || open.ofSite >= MAX_OPEN_IN_SITE) return "none";
  return open.all < MAX_OPEN ? "some" : "full";
}

/**
 * Returns the login to remove for a new one of a network when all places are taken: the oldest of the site that has the
 * most. A site that fills the places therefore displaces its own logins only.
 *
 * @param undecided the open logins that nobody has decided yet, oldest first
 * @returns undefined if no site has more than the network's own would have
 */
export function displacedLogin<Login extends { readonly network: string }>(
  undecided: readonly Login[],
  network: string,
): Login | undefined {
  const bySite = Map.groupBy(undecided, (login) => siteOf(login.network) ?? login.network);
  const own = bySite.get(siteOf(network) ?? network)?.length ?? 0;
  let most: readonly Login[] = [];
  for (const logins of bySite.values()) if (logins.length > most.length) most = logins;
  return most.length > own + 1 ? most[0] : undefined;
}

/** Returns a code as it is shown, in two halves. */
export function shownCode(code: string): string {
  return `${code.slice(0, code.length / 2)}-${code.slice(code.length / 2)}`;
}

/** Returns the code that somebody has typed, without separators. */
export function typedCode(text: string): string {
  return text.replaceAll(/[\s-]/g, "").toUpperCase();
}

/** Returns the name that a device reports, in a form that is safe to show: one line, without characters that hide text. */
export function machineName(text: string): string {
  const characters = Array.from(text.replaceAll(/[\p{C}\p{Z}]+/gu, " ").trim());
  return characters.slice(0, MAX_MACHINE_CHARACTERS).join("").trim() || "a machine without a name";
}

/**
 * Returns how long somebody who has typed wrong codes has to wait before the next code is checked; 0 for no wait.
 * @param limit number of wrong codes after which somebody has to wait
 */
export function attemptWaitMs(
  counted: { readonly since: number; readonly count: number } | undefined,
  limit: number,
  now: number,
): number {
  if (!counted || counted.count < limit) return 0;
  return Math.max(0, counted.since + ATTEMPTS_MS - now);
}

/** Returns the error for somebody who has typed too many wrong codes. */
export function tooManyWrongCodes(whose: "account" | "network", retryAfterSeconds: number): DomainError {
  const minutes = Math.ceil(retryAfterSeconds / 60);
  const message = `too many wrong codes were typed: try again in ${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
  return new DomainError(ErrorReason.TOO_MANY_CALLS, message, {
    scope: whose === "account" ? "account" : "address",
    retry_after_seconds: String(retryAfterSeconds),
  });
}

/**
 * Requires that the deciding person is the one that the page named: somebody else may have signed in in another tab.
 *
 * @param userId user id of the person that the page named
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireNamedPerson({ subject }: Pick<Caller, "subject">, userId: string): void {
  if (userId.toLowerCase() === subject.id) return;
  throw new DomainError(
    ErrorReason.PHASE_UNSUITABLE,
    "another person is signed in now: check who the machine would act as, and decide again",
    { resource: "session", phase: "another_person" },
  );
}

/** Requires that a session may create tokens, as CreatePersonalAccessToken does. @throws DomainError PERMISSION_DENIED */
export function requireMayMakeTokens({ readOnly }: Pick<Caller, "readOnly">): void {
  if (readOnly) throw permissionDenied("write", "this session is read-only: it can give no machine a token");
}
