import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Admission } from "../../rpc/access/admission.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { type ReportFault, writeConnectError } from "../../rpc/error/error.ts";
import type { SignIn } from "../../services/identity/sign-in.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { type Dispatch, withErrorResponses, writeError } from "../dispatch/dispatch.ts";
import { writeWhole } from "../output/node-response.ts";
import { isFrom, sessionCookie, sessionIn } from "./session-cookie.ts";
import { type SessionOrigin, sessionRedirect } from "./session-origin.ts";

const PATH = /^\/sign-in(?:\/[^?]*)?(?:\?|$)/;

/** Name in the access log: nothing of a request may stand there. */
const OPERATION = "sign-in";

/** Bytes of a request: a secret, and whether the person agreed. */
const MAX_BODY_BYTES = 1024;

/** The page loads nothing and sends nothing elsewhere, runs no script but its own, and is in no frame. */
const CONTENT_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const FILES: Readonly<Record<string, readonly [name: string, type: string]>> = {
  "/sign-in": ["sign-in.html", "text/html; charset=utf-8"],
  "/sign-in/sign-in.js": ["sign-in.js", "text/javascript; charset=utf-8"],
  "/sign-in/sign-in.css": ["sign-in.css", "text/css; charset=utf-8"],
};

export interface SignInOptions {
  readonly signIn: SignIn;
  readonly admission: Admission;
  readonly sessionOrigin: () => SessionOrigin;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
  readonly report: ReportFault;
}

/** Returns whether a request is for the sign-in page or what that calls. */
export function isSignIn(req: HttpRequest): boolean {
  return PATH.test(req.url ?? "");
}

/**
 * Creates the dispatch of the sign-in page: its three files, `POST /sign-in/person`, which names whom a secret would
 * sign in, and `POST /sign-in/session`, which does it. Failures have the form of Connect's JSON errors.
 */
export function createSignInDispatch(options: SignInOptions): Dispatch {
  return withErrorResponses((req, res, record) => dispatch(options, req, res, record), options.report);
}

async function dispatch(
  options: SignInOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  record.operation = OPERATION;
  const path = (req.url ?? "").replace(/\?.*/, "");
  const file = FILES[path];
  if (file) return servePage(options, file, req, res, record);
  const act =
    path === "/sign-in/person" ? namePerson : path === "/sign-in/session" ? beginSession : undefined;
  if (!act) {
    const error = writeConnectError(ErrorReason.OPERATION_UNKNOWN, "nothing is served under this path");
    return writeError(res, record, error, 404);
  }
  if (req.method !== "POST") return writeError(res, record, wrongMethod("POST"), 405, { allow: "POST" });
  options.admission.requireOpen();
  requireOwnPage(req, options.sessionOrigin());
  return act(options, req, res, record);
}

async function servePage(
  { sessionOrigin }: SignInOptions,
  [name, type]: readonly [string, string],
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  if (req.method !== "GET" && req.method !== "HEAD") {
    return writeError(res, record, wrongMethod("GET"), 405, { allow: "GET, HEAD" });
  }
  const header = pageHeader(type);
  const elsewhere = name.endsWith(".html") ? sessionRedirect(req, sessionOrigin(), "/sign-in") : undefined;
  if (elsewhere) {
    header.set("location", elsewhere);
    return writeWhole(res, 302, header, new Uint8Array(), record.output);
  }
  await writeWhole(
    res,
    200,
    header,
    req.method === "HEAD" ? new Uint8Array() : pageFile(name),
    record.output,
  );
}

async function namePerson(
  { signIn, admission }: SignInOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const { secret } = await readRequest(req);
  const present = await presentCaller(admission, req);
  const person = secret === "" ? undefined : await signIn.findPerson(secret);
  const signedIn = present && (await signIn.findPersonOf(present));
  await writeJson(res, record, { ...(person && { person }), ...(signedIn && { signedIn }) });
}

async function beginSession(
  { signIn, admission, sessionOrigin, now }: SignInOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  if (!sessionOrigin().isSafe) {
    throw writeConnectError(
      ErrorReason.PHASE_UNSUITABLE,
      "sessions need TLS: give the server a base URL with https, see docs/sign-in.md",
      { resource: "session", phase: "plain_http" },
    );
  }
  const { secret, replace } = await readRequest(req);
  const present = await presentCaller(admission, req);
  const { value, endsAt } = await signIn.begin(secret, present, replace);
  res.setHeader("set-cookie", sessionCookie(value, Math.floor((endsAt - now()) / 1000)));
  await writeJson(res, record, {});
}

/** Returns who is signed in in the browser that sent a request; its record names nobody. */
async function presentCaller(admission: Admission, req: HttpRequest) {
  const session = sessionIn(req.headers.cookie);
  if (session === undefined) return undefined;
  const found = await admission.identify(undefined, { requestId: "", operation: OPERATION }, session);
  return found.kind === "known" ? found.caller : undefined;
}

/** Requires a request of the page itself: another site can send forms, and no JSON from this origin. */
function requireOwnPage(req: HttpRequest, own: SessionOrigin): void {
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

interface SignInRequest {
  readonly secret: string;
  readonly replace: boolean;
}

async function readRequest(req: HttpRequest): Promise<SignInRequest> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) {
      const limit = String(MAX_BODY_BYTES);
      throw writeConnectError(ErrorReason.BODY_TOO_LARGE, "the request is too large", { limit_bytes: limit });
    }
    chunks.push(chunk);
  }
  try {
    const { secret = "", replace = false } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (typeof secret === "string" && typeof replace === "boolean") return { secret, replace };
  } catch {
    // Answered below; what was sent may be a secret.
  }
  throw writeConnectError(ErrorReason.BODY_MALFORMED, "the request is no JSON object of the sign-in page");
}

function wrongMethod(allowed: string): ConnectError {
  return writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, `this is asked for with ${allowed}`, {
    allowed,
  });
}

function writeJson(res: HttpResponse, record: CallRecord, value: object): Promise<void> {
  return writeWhole(
    res,
    200,
    pageHeader("application/json"),
    Buffer.from(JSON.stringify(value)),
    record.output,
  );
}

function pageHeader(type: string): Headers {
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

const pages = new Map<string, Uint8Array>();

/** Returns a file of the page, read once. */
function pageFile(name: string): Uint8Array {
  let bytes = pages.get(name);
  if (!bytes) {
    bytes = readFileSync(join(import.meta.dirname, "page", name));
    pages.set(name, bytes);
  }
  return bytes;
}
