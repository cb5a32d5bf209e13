import { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Admission } from "../../rpc/access/admission.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { writeConnectError } from "../../rpc/error/error.ts";
import { readBytes } from "../body/read-bytes.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { edgeStatus } from "../dispatch/edge-status.ts";
import { writeWhole } from "../output/node-response.ts";
import { isFrom, sessionIn } from "./session-cookie.ts";
import type { SessionOrigin } from "./session-origin.ts";

/** Operation name in the access log, which contains nothing from the request. */
export const SIGN_IN_OPERATION = "sign-in";

/** Maximum bytes of a request of the page: a secret, and whether the person agreed. */
const MAX_BODY_BYTES = 1024;

/** The pages load nothing from and send nothing to other origins, run only their own scripts, and cannot be framed. */
const CONTENT_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Answers one path below /sign-in. */
export type SignInAct = (req: HttpRequest, res: HttpResponse, record: CallRecord) => Promise<void>;

/** Returns the caller that is signed in in the browser that sent a request, without recording it in the access log. */
export async function presentCaller(admission: Admission, req: HttpRequest) {
  const session = sessionIn(req.headers.cookie);
  if (session === undefined) return undefined;
  const found = await admission.identify(undefined, { requestId: "", operation: SIGN_IN_OPERATION }, session);
  return found.kind === "known" ? found.caller : undefined;
}

/** Requires that the page itself sent a request: another site can send forms, but not JSON from this origin. */
export function requireOwnPage(req: HttpRequest, own: SessionOrigin): void {
  if (!isFrom(req, own) || req.headers.authorization !== undefined) {
    throw writeConnectError(ErrorReason.PERMISSION_DENIED, `people sign in on ${own.origin}/sign-in alone`, {
      permission: "sign_in",
    });
  }
  if (!/^application\/json(?:;|$)/i.test(req.headers["content-type"] ?? "")) {
    throw writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, "send application/json", {
      allowed: "application/json",
    });
  }
}

/** Requires that browsers do not send the session unencrypted. */
export function requireSafe({ isSafe }: SessionOrigin): void {
  if (isSafe) return;
  throw writeConnectError(
    ErrorReason.PHASE_UNSUITABLE,
    "sessions need TLS: give the server a base URL with https, see docs/sign-in.md",
    { resource: "session", phase: "plain_http" },
  );
}

/**
 * Reads the JSON object of a request of the page.
 * @param defaults the default of each field, which also determines its type; other fields are ignored
 */
export async function readPageRequest<T extends Readonly<Record<string, string | boolean>>>(
  req: HttpRequest,
  defaults: T,
): Promise<T> {
  const text = await readText(req, MAX_BODY_BYTES);
  try {
    const sent = JSON.parse(text);
    const read = Object.entries(defaults).map(([name, absent]) => [name, sent[name] ?? absent] as const);
    if (read.every(([name, value]) => typeof value === typeof defaults[name])) {
      return Object.fromEntries(read) as T;
    }
  } catch {
    // Reported below without the parser's message, which may quote a secret.
  }
  throw writeConnectError(ErrorReason.BODY_MALFORMED, "the request is no JSON object of the sign-in page");
}

/**
 * Reads a form, as OAuth clients send it. For another media type or a body that is too large it writes an OAuth error
 * with 400, the only status that those clients know (RFC 6749, 5.2), and returns undefined.
 *
 * @param maxBytes maximum bytes of the body
 */
export async function readForm(
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
  maxBytes: number,
): Promise<URLSearchParams | undefined> {
  try {
    const allowed = "application/x-www-form-urlencoded";
    if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(req.headers["content-type"] ?? ""))
      throw writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, `send ${allowed}`, { allowed });
    return new URLSearchParams(await readText(req, maxBytes));
  } catch (thrown) {
    if (!(thrown instanceof ConnectError) || !UNREADABLE.has(edgeStatus(thrown))) throw thrown;
    record.code = thrown.code;
    await writeJson(res, record, { error: "invalid_request", error_description: thrown.rawMessage }, 400);
    return undefined;
  }
}

/** Statuses for bodies that are too large or of another media type. */
const UNREADABLE: ReadonlySet<number> = new Set([413, 415]);

/** Reads the body of a request. @param maxBytes maximum bytes of the body */
async function readText(req: HttpRequest, maxBytes: number): Promise<string> {
  return (await readBytes(req, maxBytes)).toString("utf8");
}

/** Returns the error for a request with a method that the path does not support. */
export function wrongMethod(allowed: string): ConnectError {
  return writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, `use ${allowed}`, {
    allowed,
  });
}

/** Writes a JSON object that must not be cached. @param status default 200 */
export function writeJson(res: HttpResponse, record: CallRecord, value: object, status = 200): Promise<void> {
  const header = pageHeader("application/json");
  return writeWhole(res, status, header, Buffer.from(JSON.stringify(value)), record.output);
}

/** Redirects a browser to a page of the server, or to a provider in the settings. */
export function redirect(res: HttpResponse, record: CallRecord, location: string): Promise<void> {
  const header = pageHeader("text/plain");
  header.set("location", location);
  return writeWhole(res, 302, header, new Uint8Array(), record.output);
}

/** Returns the headers of every response below /sign-in. */
export function pageHeader(type: string): Headers {
  return new Headers({
    "content-type": type,
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
  });
}
