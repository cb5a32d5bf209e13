import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { type Session, SessionSchema } from "#gen/service/v1/user_pb.js";
import { DomainError, phaseUnsuitable } from "../error.ts";

/** Time after which a session ends in any case: 7 days. */
export const SESSION_VALID_MS = 7 * 24 * 3600 * 1000;

/** Time without a request after which a session ends: 12 hours. */
export const SESSION_IDLE_MS = 12 * 3600 * 1000;

/** Maximum number of sessions of a user. When one more begins, the oldest ends. */
export const MAX_SESSIONS = 25;

/** Validity of a sign-in link: 15 minutes. */
export const SIGN_IN_LINK_VALID_MS = 15 * 60 * 1000;

/**
 * Returns whether a session has ended at `at`; times in milliseconds since 1970 UTC.
 * @param lastUsedAt its beginning, before its first request
 */
export function hasSessionEnded(expiresAt: number, lastUsedAt: number | null, at: number): boolean {
  return expiresAt <= at || (lastUsedAt ?? 0) + SESSION_IDLE_MS <= at;
}

/** Returns the description of a session that begins at `now`, and its end in milliseconds since 1970 UTC. */
export function newSession(
  {
    userId,
    readOnly,
    endsAt = Number.POSITIVE_INFINITY,
  }: { readonly userId: string; readonly readOnly: boolean; readonly endsAt?: number | undefined },
  id: string,
  now: number,
): { session: Session; expiresAtMs: number } {
  const expiresAtMs = Math.min(now + SESSION_VALID_MS, endsAt);
  const session = create(SessionSchema, {
    id,
    userId,
    createdAt: timestampFromMs(now),
    expiresAt: timestampFromMs(expiresAtMs),
    readOnly,
  });
  return { session, expiresAtMs };
}

/**
 * Requires that nobody else is signed in, or that the person agreed to sign in in place of them.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireReplacementAgreed(isOtherSignedIn: boolean, isAgreed: boolean): void {
  if (!isOtherSignedIn || isAgreed) return;
  throw phaseUnsuitable("session", "signed_in", "another person is signed in: agree to replace that session");
}

/** Returns the error for a secret that signs nobody in; it is the same for every cause. */
export function signInRefused(): DomainError {
  return new DomainError(
    ErrorReason.UNAUTHENTICATED,
    "this signs nobody in: a link works once, within 15 minutes, and a token until it expires",
  );
}
