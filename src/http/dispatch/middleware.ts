import { Code, cors } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { CallLimits } from "../../rpc/access/call-limits.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import type { Readiness } from "../../rpc/health.ts";
import type { CallTraces } from "../../tracing/call-traces.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { isConsole } from "../console/console.ts";
import { isMcp } from "../mcp/mcp.ts";
import { openOutput } from "../output/open-output.ts";
import type { OutputBudget } from "../output/output-budget.ts";
import { isReference } from "../reference/reference.ts";
import { isScim } from "../scim/scim.ts";
import { isSignIn } from "../sign-in/sign-in.ts";
import { LIMIT_HEADERS, TOKEN_END_HEADER, writeLimitHeaders } from "./caller-headers.ts";
import type { ClientAddress } from "./client-address.ts";
import { type Dispatch, writeError } from "./dispatch.ts";
import { isWebhook } from "./webhook.ts";

/** One finished call, for the access log. It contains nothing from a body or a token. */
export interface AccessLine {
  readonly requestId: string;
  readonly operation: string;
  /** The code of the protocol: `ok`, `not_found` and so on. */
  readonly code: string;
  /** The HTTP status; 200 for failed gRPC calls. */
  readonly status: number;
  readonly durationMs: number;
  /** The address of the client, or of the last trusted proxy when the client is unknown. */
  readonly client: string;
  readonly organization?: string;
  readonly caller?: string;
  readonly token?: string;
  /** The id of the trace that the call belongs to. */
  readonly trace?: string;
}

/** The state that probes report. */
export interface Probes {
  /** While there are problems, /readyz responds with 503 and lists them. */
  readonly readiness: Pick<Readiness, "problems">;
  /** Returns warnings to add to the response; they do not make the server unready. */
  readonly warnings?: () => readonly { readonly check: string; readonly reason: string }[];
  /** The release of the server, such as `0.1.0`. */
  readonly version: string;
}

export interface MiddlewareOptions {
  readonly dispatch: Dispatch;
  /** Handles requests that are posted to workflows; see isWebhook. */
  readonly webhook: Dispatch;
  /** Handles the sign-in page and its requests; see isSignIn. */
  readonly signIn: Dispatch;
  /** Handles the pages of the console and their files; see isConsole. */
  readonly console: Dispatch;
  /** Handles the OpenAPI document and the pages generated from it; see isReference. */
  readonly reference: Dispatch;
  /** Handles the requests of identity providers; see isScim. */
  readonly scim: Dispatch;
  /** Handles the requests of the Model Context Protocol; see isMcp. */
  readonly mcp: Dispatch;
  readonly probes: Probes;
  readonly corsOrigins: ReadonlySet<string>;
  readonly clientAddress: ClientAddress;
  readonly limits: Pick<CallLimits, "ofAddress" | "noteRefusal">;
  readonly newId: () => string;
  /** Counts the bytes of responses that wait for their clients. */
  readonly budget: OutputBudget;
  readonly log: (line: AccessLine) => void;
  /** The traces of the requests that are logged. */
  readonly traces: CallTraces;
  /** Counts the requests that are logged. */
  readonly measures: {
    begin(): void;
    end(call: AccessLine, method: string): void;
  };
}

/**
 * Creates the handler that every request passes first: request id, probes, CORS,
 * and the access log. Probes and preflights are not logged.
 */
export function createMiddleware(
  options: MiddlewareOptions,
): (req: HttpRequest, res: HttpResponse, peer: string) => void {
  return (req, res, peer) => {
    // CORS comes first, so that pages of other origins can read /version too.
    if (handleCors(req, res, options.corsOrigins)) return;
    if (handleProbe(req, res, options.probes)) return;
    const started = performance.now();
    options.measures.begin();
    const output = openOutput(options.budget, req, res);
    const client = options.clientAddress(peer, req.headers["x-forwarded-for"]);
    const limited = options.limits.ofAddress(client);
    const refusal = limited && writeLimitHeaders(res, limited);
    const requestId = options.newId();
    const traceparent = req.headers.traceparent as string | undefined;
    const trace = options.traces.begin(traceparent, requestId);
    const record: CallRecord = {
      requestId,
      operation: NO_OPERATION,
      output,
      client,
      ...(refusal && { refusal }),
      ...(trace && { trace }),
    };
    res.setHeader("x-request-id", requestId);
    if (trace) res.setHeader("x-trace-id", trace.traceId);
    res.once("close", () => {
      output.end();
      const { caller } = record;
      const line: AccessLine = {
        requestId,
        operation: record.operation,
        code: codeOf(record, res),
        status: res.statusCode,
        durationMs: Math.round((performance.now() - started) * 100) / 100,
        client,
        ...(caller && {
          organization: caller.organizationId,
          caller: caller.subject.id,
          token: caller.tokenId,
        }),
        ...(trace && { trace: trace.traceId }),
      };
      if (!caller && !refusal && isRefused(record, res)) options.limits.noteRefusal(client);
      options.measures.end(line, req.method ?? "");
      options.log(line);
      options.traces.end(line, traceparent);
    });
    const dispatch = dispatchOf(options, req);
    // The protocols of operations have forms of their own for errors.
    if (refusal && dispatch !== options.dispatch) writeError(res, record, refusal, TOO_MANY_REQUESTS);
    else void dispatch(req, res, record);
  };
}

function dispatchOf(options: MiddlewareOptions, req: HttpRequest): Dispatch {
  if (isScim(req)) return options.scim;
  if (isMcp(req)) return options.mcp;
  if (isSignIn(req)) return options.signIn;
  if (isWebhook(req)) return options.webhook;
  if (isReference(req)) return options.reference;
  return isConsole(req) ? options.console : options.dispatch;
}

const TOO_MANY_REQUESTS = 429;

/** Returns whether a request was refused because of the request itself, not because of the server's state. */
function isRefused({ code, isNoRefusal }: CallRecord, { statusCode }: HttpResponse): boolean {
  if (isNoRefusal) return false;
  if (code === Code.Unauthenticated) return true;
  return statusCode >= 400 && statusCode < 500 && statusCode !== TOO_MANY_REQUESTS;
}

/**
 * The operation in the log for a path that names none. The path itself is not
 * logged: the client chooses it, and it may contain a secret.
 */
const NO_OPERATION = "none";

function codeOf(record: CallRecord, res: HttpResponse): string {
  if (record.code !== undefined) return codeToString(record.code);
  // On HTTP/2 a stream that its client has reset counts as finished, too.
  if (!res.writableEnded || !res.writableFinished) return codeToString(Code.Canceled);
  if (res.statusCode === 408) return codeToString(Code.DeadlineExceeded);
  return res.statusCode < 400 ? "ok" : codeToString(Code.Unknown);
}

/**
 * Seconds for which browsers may cache the response to a preflight; two hours is
 * the cap of the strictest.
 */
const PREFLIGHT_SECONDS = 7_200;

const ALLOWED_HEADERS = [
  ...cors.allowedHeaders,
  "Authorization",
  "Idempotency-Key",
  "Last-Event-ID",
  "Mcp-Method",
  "Mcp-Name",
  "Mcp-Protocol-Version",
  "Traceparent",
].join(", ");
const EXPOSED_HEADERS = [
  ...cors.exposedHeaders,
  "X-Request-Id",
  "X-Trace-Id",
  "Idempotency-Replayed",
  "Idempotency-Secret-Omitted",
  TOKEN_END_HEADER,
  ...LIMIT_HEADERS,
].join(", ");

/**
 * Allows pages of the configured origins to call the server. Returns true when the
 * request was a preflight, which has then been answered.
 *
 * @param origins exact origins such as `https://console.example.org`; no wildcard
 */
function handleCors(req: HttpRequest, res: HttpResponse, origins: ReadonlySet<string>): boolean {
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

/**
 * Answers probes, which need no token: /healthz reports that the process is alive, /readyz that it accepts
 * requests, or every problem that prevents it, and /version the release.
 *
 * @returns whether the request was a probe
 */
function handleProbe(
  req: HttpRequest,
  res: HttpResponse,
  { readiness, warnings: findWarnings, version }: Probes,
): boolean {
  switch (req.url) {
    case "/healthz":
      return respond(res, 200, { status: "ok" });
    case "/readyz": {
      const problems = readiness.problems();
      const [first] = problems;
      const warnings = findWarnings?.() ?? [];
      const withWarnings = warnings.length > 0 && { warnings };
      if (!first) return respond(res, 200, { status: "ok", ...withWarnings });
      return respond(res, 503, { status: "unavailable", reason: first.reason, problems, ...withWarnings });
    }
    case "/version":
      if (req.method !== "GET" && req.method !== "HEAD") return false;
      return respond(res, 200, { name: "chartroom", version });
    default:
      return false;
  }
}

function respond(res: HttpResponse, status: number, body: object): true {
  res.statusCode = status;
  res.setHeader("content-type", "application/json");
  res.setHeader("cache-control", "no-store");
  res.end(JSON.stringify(body));
  return true;
}
