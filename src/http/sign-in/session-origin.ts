import { isIP } from "node:net";

/** The one origin whose pages have sessions. */
export interface SessionOrigin {
  readonly origin: string;
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
  const { origin, host, protocol } = url;
  return { origin, host, isLoopback, isSafe: isLoopback || protocol === "https:" };
}

/** Returns whether a host of a URL, without its port, is this machine's own. */
export function isLoopbackHost(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (isIP(address) === 4) return address.startsWith("127.");
  return address === "::1" || address === "localhost" || address.endsWith(".localhost");
}
