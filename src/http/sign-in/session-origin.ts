import { isIP } from "node:net";
import type { HttpRequest } from "../connection/listener.ts";

/** The one origin whose pages may use sessions. */
export interface SessionOrigin {
  readonly origin: string;
  /** The origin with the path of the base URL, without a trailing slash, to which providers send browsers back. */
  readonly base: string;
  /** Its host with the port, as the header Host names it. */
  readonly host: string;
  readonly isLoopback: boolean;
  /** False when browsers would send the session unencrypted. */
  readonly isSafe: boolean;
}

/**
 * The host of sessions on a loopback address. Cookies ignore ports: browsers would send a cookie of 127.0.0.1 to every
 * server that an agent starts there.
 */
const LOOPBACK_NAME = "chartroom.localhost";

/** Returns the origin of sessions for the URL under which clients reach the server. */
export function sessionOriginOf(baseUrl: string): SessionOrigin {
  const url = new URL(baseUrl);
  const isLoopback = isLoopbackHost(url.hostname);
  if (isLoopback) url.hostname = LOOPBACK_NAME;
  const { origin, host, protocol, pathname } = url;
  return {
    origin,
    base: origin + pathname.replace(/\/+$/, ""),
    host,
    isLoopback,
    isSafe: isLoopback || protocol === "https:",
  };
}

/**
 * Returns the URL to which a page that was requested by a loopback address is redirected: the same page at the origin
 * of sessions. Browsers keep the fragment.
 *
 * @param path of the page; may not begin with two slashes
 * @returns undefined when no redirect is needed
 */
export function sessionRedirect(
  req: HttpRequest,
  { origin, host, isLoopback }: SessionOrigin,
  path: string,
): string | undefined {
  const asked = ("authority" in req ? req.authority : undefined) ?? req.headers.host ?? "";
  if (!isLoopback || asked === host || !isLoopbackHost(asked.replace(/:\d+$/, ""))) return undefined;
  return origin + path;
}

/** Returns whether the host of a URL, without its port, is a loopback host. */
function isLoopbackHost(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (isIP(address) === 4) return address.startsWith("127.");
  return address === "::1" || address === "localhost" || address.endsWith(".localhost");
}
