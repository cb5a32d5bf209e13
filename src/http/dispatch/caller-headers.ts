import type { ConnectError } from "@connectrpc/connect";
import { announcedEnd } from "../../rpc/access/authentication.ts";
import type { CallLimits, LimitState } from "../../rpc/access/call-limits.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import type { HttpResponse } from "../connection/listener.ts";

/** The header with the expiry of the caller's token, as an RFC 3339 timestamp; sent when it is within 7 days. */
export const TOKEN_END_HEADER = "Token-Expires-At";

/** The headers of responses to a caller that has used half of a limit, and of responses that refuse past a limit. */
export const LIMIT_HEADERS = ["RateLimit", "RateLimit-Policy", "Retry-After"] as const;

const WINDOW_SECONDS = 60;

/** Sets {@link TOKEN_END_HEADER} when the caller's token expires within 7 days. */
export function warnOfTokenEnd(res: HttpResponse, { caller }: CallRecord, now: number): void {
  const end = caller && announcedEnd(caller, now);
  if (end !== undefined) res.setHeader(TOKEN_END_HEADER, end);
}

/**
 * Counts a call of an authenticated caller, and sets the headers of a limit once half of it is used.
 * @returns the error with which the call must end, which its protocol sends
 */
export function limitCaller(
  limits: Pick<CallLimits, "admit">,
  res: HttpResponse,
  { caller }: CallRecord,
): ConnectError | undefined {
  const state = caller && limits.admit(caller);
  return state && writeLimitHeaders(res, state);
}

/** Writes the headers of a limit. @returns the error with which the call must end */
export function writeLimitHeaders(res: HttpResponse, state: LimitState): ConnectError | undefined {
  const { scope, limit, remaining, resetSeconds, refusal } = state;
  res.setHeader("ratelimit", `"${scope}";r=${remaining};t=${resetSeconds}`);
  if (limit !== undefined) res.setHeader("ratelimit-policy", `"${scope}";q=${limit};w=${WINDOW_SECONDS}`);
  if (refusal) res.setHeader("retry-after", String(refusal.retryAfterSeconds));
  return refusal?.error;
}
