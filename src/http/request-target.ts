import type { HttpRequest } from "./listener.ts";

/**
 * Whether the host and the path of a request make up a URL, which handlers take
 * for granted. HTTP/1.0 may leave out the host (simple health probes do); such a
 * request gets `localhost`.
 */
export function hasTarget(req: HttpRequest): boolean {
  if (req.httpVersion === "1.0") req.headers.host ??= "localhost";
  const authority = "authority" in req ? req.authority : req.headers.host;
  return Boolean(authority) && URL.canParse(req.url ?? "", `http://${authority}`);
}
