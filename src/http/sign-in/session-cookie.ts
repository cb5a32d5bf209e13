import type { Route } from "../../rpc/routes.ts";
import type { HttpRequest } from "../connection/listener.ts";
import type { SessionOrigin } from "./session-origin.ts";

/** Because of the prefix, browsers accept the cookies only with Secure, for this host and every path (RFC 6265bis). */
const NAMES = { session: "__Host-chartroom", flow: "__Host-chartroom-sign-in" } as const;

const ATTRIBUTES = "HttpOnly; Secure; SameSite=Lax";

/** Returns the Set-Cookie header of a session. @param maxAgeSeconds time until the session ends */
export function sessionCookie(value: string, maxAgeSeconds: number): string {
  return `${NAMES.session}=${value}; Path=/; Max-Age=${maxAgeSeconds}; ${ATTRIBUTES}`;
}

/** Returns the Set-Cookie header of a begun sign-in, which the browser sends back with the provider's response. */
export function flowCookie(value: string, maxAgeSeconds: number): string {
  return `${NAMES.flow}=${value}; Path=/; Max-Age=${maxAgeSeconds}; ${ATTRIBUTES}`;
}

/** Returns the Set-Cookie header that removes it, since it is used once. */
export function noFlowCookie(): string {
  return flowCookie("", 0);
}

/**
 * Returns the session of a request, if sessions are accepted for it: only for operations of service.v1 by POST from a
 * page of the server's own origin, in a protocol that browsers use, without a header `Authorization`.
 */
export function sessionOf(
  req: HttpRequest,
  route: Route | undefined,
  own: SessionOrigin,
): string | undefined {
  if (req.headers.cookie === undefined || req.headers.authorization !== undefined) return undefined;
  if (req.method !== "POST" || !route?.operation.startsWith("service.v1.")) return undefined;
  if (/^application\/grpc/i.test(req.headers["content-type"] ?? "")) return undefined;
  return isFrom(req, own) ? sessionIn(req.headers.cookie) : undefined;
}

/** Returns whether a page of the server's own origin sent a request. */
export function isFrom({ headers }: HttpRequest, { origin }: SessionOrigin): boolean {
  return headers.origin === origin;
}

/** Returns the session among a browser's cookies; undefined when there are two, since another site may have set one. */
export function sessionIn(cookies: string | undefined): string | undefined {
  return cookieIn(cookies, "session");
}

/** Returns one of the server's cookies; undefined when there are two of that name. */
export function cookieIn(cookies: string | undefined, which: keyof typeof NAMES): string | undefined {
  const values = (cookies ?? "").split(";").flatMap((each) => {
    const [name, value] = each.split("=", 2);
    return name?.trim() === NAMES[which] ? [value?.trim() ?? ""] : [];
  });
  return values.length === 1 ? values[0] : undefined;
}
