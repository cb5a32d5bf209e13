import type { IncomingHttpHeaders } from "node:http";
import { maskSecrets } from "../domain/secrets.ts";
import { ScmFailure, type ScmFailureKind } from "./failure.ts";
import type { HostResponse } from "./host-request.ts";

/** Maximum wait: the rate-limit windows of all hosts are at most an hour, so a longer wait means a wrong clock. */
const MAX_WAIT_MS = 3_600_000;
/** The wait that the hosts' documentation recommends when a response names none. */
const DEFAULT_WAIT_MS = 60_000;

/**
 * Returns the failure for an unsuccessful response.
 *
 * @param now milliseconds since 1970 UTC
 */
export function failureOfResponse(
  host: string,
  { status, headers, text }: HostResponse,
  secrets: readonly string[],
  now: number,
): ScmFailure {
  const said = hostMessage(text, secrets);
  const kind = kindOf(status, headers, said);
  const message = `answered ${status}${said && `: ${said}`}`;
  const statedWait = waitMs(headers, now);
  if (kind === "rate_limited") {
    return new ScmFailure(kind, host, message, { retryAfterMs: statedWait ?? DEFAULT_WAIT_MS });
  }
  return new ScmFailure(kind, host, message, kind === "unavailable" ? { retryAfterMs: statedWait } : {});
}

function kindOf(status: number, headers: IncomingHttpHeaders, message: string): ScmFailureKind {
  if (status === 429 || (status === 403 && isRateLimited(headers, message))) return "rate_limited";
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
function isRateLimited(headers: IncomingHttpHeaders, message: string): boolean {
  return (
    headers["retry-after"] !== undefined ||
    headers["x-ratelimit-remaining"] === "0" ||
    /rate limit/i.test(message)
  );
}

/** Returns the wait that a response asks for, in whole milliseconds, an hour at most; undefined when it names no time. */
export function waitMs(headers: IncomingHttpHeaders, now: number): number | undefined {
  const wait = statedWaitMs(headers, now);
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(Math.ceil(wait), 0), MAX_WAIT_MS);
}

function statedWaitMs(headers: IncomingHttpHeaders, now: number): number {
  const after = headers["retry-after"];
  if (after !== undefined) return /^\d+$/.test(after) ? Number(after) * 1_000 : Date.parse(after) - now;
  // Every response names the end of its window; it matters only when the limit is used up.
  const isSpent = [headers["x-ratelimit-remaining"], headers["ratelimit-remaining"]].includes("0");
  return isSpent
    ? Number(headers["x-ratelimit-reset"] ?? headers["ratelimit-reset"]) * 1_000 - now
    : Number.NaN;
}

/** Maximum length of a host's own message in a failure, in characters; a response can have megabytes. */
const MAX_CHARACTERS = 500;

/**
 * Returns a host's error message as one line of at most 500 characters without
 * secrets; empty when there is none that can be read.
 *
 * @param text the body of its response
 */
function hostMessage(text: string, secrets: readonly string[]): string {
  const body = parsed(text);
  const words = ["message", "error", "error_description", "errors"].map((name) =>
    flattenTexts(body?.[name], 3),
  );
  const masked = maskSecrets(words.filter(Boolean).join(": "), secrets);
  const line = masked.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  return [...line].slice(0, MAX_CHARACTERS).join("");
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Joins the texts of a value, which hosts nest as they like: `{"base": ["is
 * invalid"]}` becomes `base is invalid`.
 */
function flattenTexts(value: unknown, depth: number): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null || depth === 0) return "";
  if (Array.isArray(value)) return value.flatMap((each) => flattenTexts(each, depth - 1) || []).join(", ");
  const { message, ...rest } = value as Record<string, unknown>;
  if (typeof message === "string") return message;
  return Object.entries(rest)
    .map(([name, each]) => `${name} ${flattenTexts(each, depth - 1)}`.trim())
    .join(", ");
}
