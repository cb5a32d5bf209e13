import type { HttpRequest } from "../connection/listener.ts";

/**
 * A path that cannot change the host; behind a valid host every such path is
 * valid (WHATWG URL, path state).
 */
const PLAIN_PATH = /^\/[a-z0-9]/i;

/** The last host that was found valid: nearly all requests name the same one. */
let validAuthority: string | undefined;

/**
 * Returns whether the host and the path of a request form a valid URL, on which
 * handlers rely. A request whose target names another host than its headers is
 * invalid: a proxy in front of the server may have used the other host (RFC 9112,
 * section 3.2; RFC 9113, section 8.3.1). HTTP/1.0 may omit the host, as simple
 * health probes do; such a request gets `localhost`.
 */
export function hasValidTarget(req: HttpRequest): boolean {
  if (req.httpVersion === "1.0") req.headers.host ??= "localhost";
  const { host } = req.headers;
  const authority = "authority" in req ? req.authority : host;
  if (!authority || (host !== undefined && !isSameHost(host, authority))) return false;
  if (isAbsolute(req.url ?? "")) return false;
  const isPlain = PLAIN_PATH.test(req.url ?? "");
  if (isPlain && authority === validAuthority) return true;
  const isValid = URL.canParse(req.url ?? "", `http://${authority}`);
  if (isPlain && isValid) validAuthority = authority;
  return isValid;
}

/** The absolute form of a target, which clients send to proxies: captures the host and the path. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#\\@]+)([/?].*)?$/is;

/**
 * Replaces a target in absolute form, which servers must accept (RFC 9112, section 3.2.2), by its path. A target
 * whose host differs from the header `Host` is left unchanged, and is then invalid.
 */
export function takeOriginForm(req: HttpRequest): void {
  const [, authority, path = ""] = ABSOLUTE_FORM.exec(req.url ?? "") ?? [];
  if (authority === undefined || !isSameHost(authority, req.headers.host ?? "")) return;
  req.url = path.startsWith("/") ? path : `/${path}`;
}

/** Returns whether a target is in absolute form. */
function isAbsolute(url: string): boolean {
  return /^[^/].*:\/\//s.test(url);
}

function isSameHost(one: string, other: string): boolean {
  return one === other || one.toLowerCase() === other.toLowerCase();
}

/** Headers of which a request may have only one, by their names in lower case. */
const SINGLE_HEADERS: ReadonlyMap<string, string> = new Map(
  ["Host", "Authorization", "Idempotency-Key"].map((name) => [name.toLowerCase(), name]),
);

/**
 * Returns the first header that a request repeats although it may have only one; undefined if there is none. Node uses
 * the first host and the first authorization and joins idempotency keys, but a proxy in front of the server may have
 * used another one.
 */
export function repeatedHeader({ rawHeaders }: HttpRequest): string | undefined {
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const single = SINGLE_HEADERS.get(rawHeaders[at]?.toLowerCase() ?? "");
    if (single === undefined) continue;
    if (seen.has(single)) return single;
    seen.add(single);
  }
  return undefined;
}
