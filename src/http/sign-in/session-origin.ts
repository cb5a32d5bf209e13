import { isIP } from "node:net";
import type { HttpRequest } from "../connection/listener.ts";

/** The one origin whose pages have sessions. */
export interface SessionOrigin {
  readonly origin: string;
  /** The same with the path of the base URL, without a slash at its end: where providers send browsers back. */
  readonly base: string;
  /** Its host with the port, as the header Host names it. */
  readonly host: string;
  readonly isLoopback: boolean;
  /** False where browsers would send a session in the clear. */
  readonly isSafe: boolean;
}

/**
 * The host of sessions on a loopback address. Cookies ignore ports: those of 127.0.0.1 would go to every server that
 * an agent starts there.
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
 * Returns where a page of this machine is shown that was asked for by one of the machine's addresses: at the origin of
 * sessions, to which browsers take the fragment along.
 *
 * @param path that of the page, which may not begin with two slashes
 * @returns undefined where it is shown as it was asked for
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

/** Returns whether a host of a URL, without its port, is this machine's own. */
export function isLoopbackHost(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (isIP(address) === 4) return address.startsWith("127.");
  return address === "::1" || address === "localhost" || address.endsWith(".localhost");
}
