import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError, permissionDenied } from "../../error.ts";
import type { Caller } from "../caller.ts";

/** Time from the beginning of a device's login to its end (RFC 8628, expires_in): 15 minutes. */
export const DEVICE_LOGIN_VALID_MS = 15 * 60_000;

/** Time between two questions of a device (RFC 8628, interval), to which each that comes too early adds as much. */
export const POLL_INTERVAL_MS = 5_000;

/** The most that too early questions raise that time to. */
const MAX_INTERVAL_MS = 60_000;

/** Open logins of devices of one network. */
export const MAX_OPEN_IN_NETWORK = 10;

/** Open logins of one site: many who have IPv6 have hundreds or thousands of networks, and could take all places. */
export const MAX_OPEN_IN_SITE = 100;

/** Open logins of the whole installation: the more there are, the sooner somebody guesses a code. */
export const MAX_OPEN = 1_000;

/** Time in which typed codes that are wrong are counted. */
export const ATTEMPTS_MS = 15 * 60_000;

/** Wrong codes in that time after which a person, or a network, is asked for none. */
export const MAX_ATTEMPTS = { account: 10, network: 50 } as const;

const MAX_MACHINE_CHARACTERS = 64;

/** The device may not know yet, or never; the words are those of RFC 8628, 3.5. */
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

/** Returns the time between two questions after one that came too early. */
export function slowerInterval({ interval_ms }: Pick<DeviceLoginState, "interval_ms">): number {
  return Math.min(interval_ms + POLL_INTERVAL_MS, MAX_INTERVAL_MS);
}

/** The first 48 bits of a network of IPv6, all of which one sender may have. */
const SITE = /^(?:[0-9a-f]+:){3}(?=[0-9a-f]+::\/64$)/i;

/** Returns how all networks of a site begin; undefined for IPv4, where each address is a network. */
export function siteOf(network: string): string | undefined {
  return SITE.exec(network)?.[0];
}

/** Returns whether another login may begin while these are open. */
export function hasRoomForLogin(open: Readonly<Record<"ofNetwork" | "ofSite" | "all", number>>): boolean {
  return open.ofNetwork < MAX_OPEN_IN_NETWORK && open.ofSite < MAX_OPEN_IN_SITE && open.all < MAX_OPEN;
}

/** Returns a code as it is shown, in two halves. */
export function shownCode(code: string): string {
  return `${code.slice(0, code.length / 2)}-${code.slice(code.length / 2)}`;
}

/** Returns the code that somebody has typed, without what people put in between. */
export function typedCode(text: string): string {
  return text.replaceAll(/[\s-]/g, "").toUpperCase();
}

/** Returns what a device says it is called, as it can be shown: on one line, without characters that hide text. */
export function machineName(text: string): string {
  const characters = Array.from(text.replaceAll(/[\p{C}\p{Z}]+/gu, " ").trim());
  return characters.slice(0, MAX_MACHINE_CHARACTERS).join("").trim() || "a machine without a name";
}

/**
 * Returns how long somebody who has typed wrong codes has to wait until the next is looked at; 0 for no time.
 * @param limit wrong codes after which somebody waits
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
 * Requires that who decides is the person whom the page named: another tab may have signed in somebody else since.
 *
 * @param userId of the person whom the page named
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireNamedPerson({ subject }: Pick<Caller, "subject">, userId: string): void {
  if (userId.toLowerCase() === subject.id) return;
  throw new DomainError(
    ErrorReason.PHASE_UNSUITABLE,
    "another person is signed in by now: look at who the machine would act as, and decide again",
    { resource: "session", phase: "another_person" },
  );
}

/** Requires what CreatePersonalAccessToken requires of a session. @throws DomainError PERMISSION_DENIED */
export function requireMayMakeTokens({ readOnly }: Pick<Caller, "readOnly">): void {
  if (readOnly) throw permissionDenied("write", "this session is read-only: it can give no machine a token");
}
