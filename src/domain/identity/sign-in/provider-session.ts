import { SignInRefused } from "./provider.ts";

/** Maximum difference between the server's clock and a provider's, in either direction. */
export const CLOCK_TOLERANCE_SECONDS = 30;

/** Requires that the account is not blocked, and that its member has not left and is not suspended. @throws SignInRefused */
export function requireMaySignIn(
  account: { readonly blocked_at: number | null } | undefined,
  member: { readonly left_at: number | null; readonly suspended_at: number | null },
): void {
  if (!account || account.blocked_at !== null) throw new SignInRefused("blocked");
  if (member.left_at !== null || member.suspended_at !== null) throw new SignInRefused("not_member");
}

/** Requires that nobody else is signed in, or that the person agreed to replace that session. @throws SignInRefused */
export function requireAgreedSignIn(isOtherSignedIn: boolean, isAgreed: boolean): void {
  if (isOtherSignedIn && !isAgreed) throw new SignInRefused("signed_in");
}

/**
 * Returns whether a session began before a provider's logout request; times in milliseconds since 1970 UTC. Later
 * sessions stay, so that a repeated request ends no others.
 */
export function startsBefore(beganAt: number, endedAt: number): boolean {
  return beganAt <= endedAt + CLOCK_TOLERANCE_SECONDS * 1000;
}

/** Whose sessions have ended, as a logout token says; at least one of both is there. */
export interface ProviderLogoutClaims {
  readonly subject: string | undefined;
  readonly sessionId: string | undefined;
  /** Milliseconds since 1970 UTC. */
  readonly at: number;
}

const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";

/**
 * Returns what a logout token says, whose signature, issuer, audience and age were verified.
 * @throws Error when it is another token, such as an ID token
 */
export function requireLogout(claims: Readonly<Record<string, unknown>>): ProviderLogoutClaims {
  const { sub, sid, iat, events, nonce } = claims;
  const isLogout = typeof events === "object" && events !== null && LOGOUT_EVENT in events;
  const [subject, sessionId] = [sub, sid].map((each) =>
    typeof each === "string" && each ? each : undefined,
  );
  if (!isLogout || nonce !== undefined || typeof iat !== "number" || (subject ?? sessionId) === undefined) {
    throw new Error("this is no logout token of a person or a session");
  }
  return { subject, sessionId, at: iat * 1000 };
}
