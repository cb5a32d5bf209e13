import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../error.ts";

/** A token that ends within this time is announced to its owner: 7 days, in milliseconds. */
export const TOKEN_WARNING_MS = 7 * 24 * 3600 * 1000;

/** Kinds of tokens whose owners are warned before their end; programs renew theirs without a warning. */
export const WARNED_KINDS = ["personal", "service_account"] as const;

/** Returns whether the owner of a kind of token is warned before its end. */
export function isWarnedOf(kind: string): boolean {
  return WARNED_KINDS.some((warned) => warned === kind);
}

/** Returns whether a token that ends at `endsAt` is in its last 7 days; times in milliseconds since 1970 UTC. */
export function endsSoon(endsAt: number, now: number): boolean {
  return endsAt - now <= TOKEN_WARNING_MS;
}

/**
 * Returns the error for a stored token with which nothing is wrong but its end.
 * @param endedAt milliseconds since 1970 UTC
 */
export function tokenExpired(endedAt: number): DomainError {
  const at = new Date(endedAt).toISOString();
  return new DomainError(
    ErrorReason.TOKEN_EXPIRED,
    `the access token ended at ${at}: renew it, or send another one`,
    { expired_at: at },
  );
}
