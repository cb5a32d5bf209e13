import type { HttpRequest } from "./listener.ts";

/** A path that cannot change the host; behind a valid host every such path is valid (WHATWG URL, path state). */
const PLAIN_PATH = /^\/[a-z0-9]/i;

/** The last host that was found valid: nearly all requests name the same one. */
let validAuthority: string | undefined;

/**
 * Whether the host and the path of a request make up a URL, which handlers take
 * for granted. HTTP/1.0 may leave out the host (simple health probes do); such a
 * request gets `localhost`.
 */
export function hasTarget(req: HttpRequest): boolean {
  if (req.httpVersion === "1.0") req.headers.host ??= "localhost";
  const authority = "authority" in req ? req.authority : req.headers.host;
  if (!authority) return false;
  const isPlain = PLAIN_PATH.test(req.url ?? "");
  if (isPlain && authority === validAuthority) return true;
  const isValid = URL.canParse(req.url ?? "", `http://${authority}`);
  if (isPlain && isValid) validAuthority = authority;
  return isValid;
}
