import type { IncomingHttpHeaders } from "node:http";
import type { HostAnswer } from "./exchange.ts";
import { ScmFailure, type ScmFailureKind } from "./failure.ts";
import { hostMessage } from "./host-message.ts";

/** The windows of both hosts are an hour at most; a longer wait means a wrong clock. */
const LONGEST_WAIT_MS = 3_600_000;
/** The wait that both hosts' documents ask for when a response names none. */
const UNSAID_WAIT_MS = 60_000;

/**
 * Returns the failure for an unsuccessful response.
 *
 * @param now milliseconds since 1970 UTC
 */
export function failureOfResponse(
  host: string,
  { status, headers, text }: HostAnswer,
  secrets: readonly string[],
  now: number,
): ScmFailure {
  const message = hostMessage(text, secrets);
  const kind = kindOf(status, headers, message);
  const told = `answered ${status}${message && `: ${message}`}`;
  const stated = waitMs(headers, now);
  if (kind === "rate_limited") {
    return new ScmFailure(kind, host, told, { retryAfterMs: stated ?? UNSAID_WAIT_MS });
  }
  return new ScmFailure(kind, host, told, kind === "unavailable" ? { retryAfterMs: stated } : {});
}

function kindOf(status: number, headers: IncomingHttpHeaders, message: string): ScmFailureKind {
  if (status === 429 || (status === 403 && saysTooMany(headers, message))) return "rate_limited";
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404 || status === 410) return "not_found";
  if (status === 408 || status >= 500) return "unavailable";
  return status >= 400 ? "validation" : "unreadable";
}

/**
 * Returns whether the host refused too many requests. GitHub answers 403 both for
 * forbidden requests and for too many of them.
 */
function saysTooMany(headers: IncomingHttpHeaders, message: string): boolean {
  return (
    headers["retry-after"] !== undefined ||
    headers["x-ratelimit-remaining"] === "0" ||
    /rate limit/i.test(message)
  );
}

/** Returns the wait; undefined when the response names no time. */
function waitMs(headers: IncomingHttpHeaders, now: number): number | undefined {
  const wait = statedMs(headers, now);
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), LONGEST_WAIT_MS);
}

function statedMs(headers: IncomingHttpHeaders, now: number): number {
  const after = headers["retry-after"];
  if (after !== undefined) return /^\d+$/.test(after) ? Number(after) * 1_000 : Date.parse(after) - now;
  // Every response names the end of its window; it matters only when nothing is left of it.
  const isSpent = [headers["x-ratelimit-remaining"], headers["ratelimit-remaining"]].includes("0");
  return isSpent
    ? Number(headers["x-ratelimit-reset"] ?? headers["ratelimit-reset"]) * 1_000 - now
    : Number.NaN;
}
