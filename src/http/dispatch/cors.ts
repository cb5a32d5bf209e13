import { cors } from "@connectrpc/connect";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";

/**
 * Seconds for which browsers may cache the response to a preflight; two hours is
 * the cap of the strictest.
 */
const PREFLIGHT_SECONDS = 7_200;

const ALLOWED_HEADERS = [...cors.allowedHeaders, "Authorization", "Idempotency-Key"].join(", ");
const EXPOSED_HEADERS = [
  ...cors.exposedHeaders,
  "X-Request-Id",
  "Idempotency-Replayed",
  "Idempotency-Secret-Omitted",
].join(", ");

/**
 * Lets pages of the named origins call the server. Returns true when the request
 * was a preflight and is answered.
 *
 * @param origins exact origins such as `https://console.example.org`; no wildcard
 */
export function handleCors(req: HttpRequest, res: HttpResponse, origins: ReadonlySet<string>): boolean {
  const { origin } = req.headers;
  if (origins.size === 0 || origin === undefined) return false;
  res.setHeader("vary", "Origin");
  const allowed = origins.has(origin);
  if (allowed) {
    res.setHeader("access-control-allow-origin", origin);
    res.setHeader("access-control-expose-headers", EXPOSED_HEADERS);
  }
  const isPreflight = req.method === "OPTIONS" && req.headers["access-control-request-method"] !== undefined;
  if (!isPreflight) return false;
  if (allowed) {
    res.setHeader("access-control-allow-methods", "POST");
    res.setHeader("access-control-allow-headers", ALLOWED_HEADERS);
    res.setHeader("access-control-max-age", PREFLIGHT_SECONDS);
  }
  res.statusCode = 204;
  res.end();
  return true;
}
