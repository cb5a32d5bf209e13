import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { readAllBytes } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  contentTypeUnaryJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Admission } from "../../rpc/access/admission.ts";
import { type RoutingError, routingError } from "../../rpc/access/authorization.ts";
import type { CallLimits } from "../../rpc/access/call-limits.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { capDeadline, deadlineMs } from "../../rpc/deadline.ts";
import { completeError, completeUnaryError } from "../../rpc/error/complete-error.ts";
import { type ReportFault, toConnectError, writeConnectError } from "../../rpc/error/error.ts";
import { type Suggest, suggestions } from "../../rpc/error/suggestion.ts";
import { JSON_OPTIONS } from "../../rpc/request/json-options.ts";
import type { ParseElsewhere } from "../../rpc/request/parsed-request.ts";
import { queryKey } from "../../rpc/request/query-pagination.ts";
import { LargeMessages, largeMessagesKey } from "../../rpc/response/large-message.ts";
import type { Route } from "../../rpc/routes.ts";
import { streamBegunKey } from "../../services/call/call.ts";
import { isEligible } from "../../unary/eligibility.ts";
import { isGone } from "../../unary/unary-call.ts";
import type { UnaryPath } from "../../unary/unary-path.ts";
import type { BodyBudget, BodyHold } from "../body/body-budget.ts";
import { exemptFromBodyGuard } from "../body/body-guard.ts";
import { envelopes } from "../body/envelopes.ts";
import { incomingBody } from "../body/incoming-body.ts";
import { messageForm } from "../body/request-messages.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { writeStream, writeStreamHead, writeWhole } from "../output/node-response.ts";
import { dispatchPlain } from "../plain-stream/dispatch-plain.ts";
import { plainFormOf } from "../plain-stream/plain-request.ts";
import { sessionOf } from "../sign-in/session-cookie.ts";
import type { SessionOrigin } from "../sign-in/session-origin.ts";
import { nameCompression, normalizeBodyHeaders } from "./body-headers.ts";
import { limitCaller, warnOfTokenEnd } from "./caller-headers.ts";
import { contentLengthOf, runRoute } from "./run-route.ts";
import { waitBeforeBody } from "./wait-before-body.ts";

/** Clients that can use a path prefix use this one; gRPC clients cannot, and use none. */
const PREFIX = "/api";

/** Connect's unary calls, whose whole response is one body. */
const UNARY_CONTENT_TYPE = /^application\/(json|proto)(;|$)/i;

/** Headers in which a client names the compressions that it accepts for messages of a stream. */
const STREAM_COMPRESSION_HEADERS = ["connect-accept-encoding", "grpc-accept-encoding"];

/** The protocol layer's limit for responses, at its maximum: the page sizes of the contract limit responses. */
const RESPONSE_LIMIT = 0xffffffff;
const EMPTY = new Uint8Array();

export interface DispatchOptions {
  readonly routes: ReadonlyMap<string, Route>;
  readonly admission: Admission;
  readonly limits: CallLimits;
  /** Handles the requests that it supports; all others go through the protocol layer. */
  readonly unaryPath?: UnaryPath | undefined;
  readonly budget: BodyBudget;
  /** Parses large requests. */
  readonly parseElsewhere: ParseElsewhere;
  /** Returns the origin whose pages may use sessions. */
  readonly sessionOrigin: () => SessionOrigin;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Maximum deadline; longer ones are cut to it. */
  readonly maxTimeoutMs: number;
  readonly report: ReportFault;
}

/** Dispatches one HTTP request to its operation and writes the response. */
export type Dispatch = (req: HttpRequest, res: HttpResponse, record: CallRecord) => Promise<void>;

/**
 * Creates the dispatch to the operations: path, then authentication, then method
 * and content type, and only then the unary path or the protocol layer, which
 * read the body.
 */
export function createDispatch(options: DispatchOptions): Dispatch {
  const parts: DispatchParts = { ...options, suggest: suggestions(options.routes.keys()) };
  return withErrorResponses(
    (req, res, record) => authenticateAndDispatch(parts, req, res, record),
    options.report,
  );
}

/** Wraps a dispatch so that it responds with every error. @param statusOf returns the status; default: by the code */
export function withErrorResponses(
  entry: Dispatch,
  report: ReportFault,
  statusOf = ({ code }: ConnectError): number => codeToHttpStatus(code),
): Dispatch {
  return async (req, res, record) => {
    try {
      await entry(req, res, record);
    } catch (thrown) {
      const error = toConnectError(thrown, record, report);
      if (res.headersSent) {
        record.code = error.code;
        res.destroy();
      } else writeError(res, record, error, statusOf(error));
    }
  };
}

interface DispatchParts extends DispatchOptions {
  readonly suggest: Suggest;
}

async function authenticateAndDispatch(
  options: DispatchParts,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  // A preflight that the CORS middleware did not answer. Browsers send preflights without a token.
  if (req.method === "OPTIONS") return rejectPreflight(res, record);
  normalizeBodyHeaders(req.headers);
  nameCompression(req.headers, res);
  const path = pathOf(req.url ?? "");
  const route = options.routes.get(path);
  if (route) record.operation = route.operation;
  const session = sessionOf(req, route, options.sessionOrigin());
  let rejected =
    record.refusal ?? (await options.admission.admit(route, req.headers.authorization, record, session));
  rejected ??= limitCaller(options.limits, res, record);
  capDeadline(req.headers, options.maxTimeoutMs);
  const { accountId, subject } = record.caller ?? ANONYMOUS;
  const callerId = accountId || subject.id;
  warnOfTokenEnd(res, record, options.now());
  if (route && record.caller) {
    record.output?.charge(callerId);
    // Reads wait later, once their bodies have arrived; see outputLimit.
    const room = rejected || route.isRead ? undefined : record.output?.enter(undefined);
    if (room) rejected = await waitBeforeBody(room, options, req, res, record);
    if (isGone(res)) return;
  }
  const hold = options.budget.hold(callerId);
  try {
    await dispatchCall(options, { path, route, rejected, hold }, req, res, record);
  } finally {
    hold.release();
  }
}

/** The caller of rejected requests, and of requests that need no token. */
const ANONYMOUS = { accountId: "", subject: { id: "" } };

interface AdmittedCall {
  readonly path: string;
  readonly route: Route | undefined;
  readonly rejected: ConnectError | undefined;
  readonly hold: BodyHold;
}

async function dispatchCall(
  options: DispatchParts,
  { path, route, rejected, hold }: AdmittedCall,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  if (options.unaryPath && route?.unary) {
    const eligible = isEligible(req, route.unary);
    if (eligible) {
      const values = contextValuesOf(options, route, req, record, rejected);
      return options.unaryPath(route.unary, eligible, req, res, record, values, hold);
    }
  }
  const plainForm = plainFormOf(req, route);
  if (plainForm && route && !rejected) {
    const values = contextValuesOf(options, route, req, record, rejected);
    const error = await dispatchPlain(options, { route, form: plainForm, values, hold }, req, res, record);
    if (error)
      writeError(res, record, error, codeToHttpStatus(error.code), Object.fromEntries(error.metadata));
    return;
  }
  const contentType = req.headers["content-type"] ?? "";
  // A rejected caller gets no suggestion, so no work is spent on it.
  const suggestion = () => (rejected ? undefined : options.suggest(path));
  const routing = routingError(route, req.method ?? "", contentType, suggestion);
  if (routing || !route) {
    const { error, status, header } = rejected
      ? { error: rejected, status: codeToHttpStatus(rejected.code), header: {} }
      : (routing as RoutingError);
    writeError(res, record, error, status, header);
    return;
  }

  if (route.handle.method.methodKind === "bidi_streaming") exemptFromBodyGuard(req);
  const values = contextValuesOf(options, route, req, record, rejected);
  let large: LargeMessages | undefined;
  if (route.handle.method.methodKind === "server_streaming") {
    large = new LargeMessages();
    values.set(largeMessagesKey, large);
    // Headers that are sent early cannot announce a compression.
    for (const name of STREAM_COMPRESSION_HEADERS) delete req.headers[name];
    values.set(streamBegunKey, () => writeStreamHead(res, contentType));
  }
  const length = contentLengthOf(req);
  const form = messageForm(req);
  const body = envelopes(contentType, incomingBody(req, deadlineMs(req.headers)));
  const response = await runRoute(options, { route, values, hold, form, length, body }, req, res, record);
  if (UNARY_CONTENT_TYPE.test(contentType)) {
    const header = new Headers(response.header);
    const body = response.body
      ? await readAllBytes(response.body as AsyncIterable<Uint8Array>, RESPONSE_LIMIT)
      : EMPTY;
    const complete = await completeUnaryError(response.status, header, body, record, options.report);
    await writeWhole(res, complete.status, header, complete.body, record.output);
  } else {
    await writeStream(res, completeError(response, record, options.report), record.output, large);
  }
}

function rejectPreflight(res: HttpResponse, record: CallRecord): void {
  const message =
    "operations are called with POST; pages of other origins may call them only where --cors-origins names the origin";
  const error = writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, message, { allowed: "POST" });
  writeError(res, record, error, 405, { allow: "POST" });
}

/** Returns the path of an operation in the route table: without the prefix and the query. */
function pathOf(url: string): string {
  const begin = url.startsWith(`${PREFIX}/`) ? PREFIX.length : 0;
  const query = url.indexOf("?");
  return url.slice(begin, query === -1 ? undefined : query);
}

/** Returns the context values of a call, with the query of its URL. */
function contextValuesOf(
  { admission }: DispatchOptions,
  route: Route,
  { url = "" }: HttpRequest,
  record: CallRecord,
  rejected: ConnectError | undefined,
): ContextValues {
  const values = admission.contextValues(route, record, rejected);
  const query = url.indexOf("?");
  if (query !== -1) values.set(queryKey, url.slice(query + 1));
  return values;
}

/** Sends an error in the form of Connect's JSON errors, and records it for the access log. */
export function writeError(
  res: HttpResponse,
  record: CallRecord,
  error: ConnectError,
  status: number,
  header: Readonly<Record<string, string>> = {},
): void {
  record.code = error.code;
  const headers = new Headers({ "content-type": contentTypeUnaryJson, ...header });
  for (const [name, value] of error.metadata) headers.set(name, value);
  void writeWhole(res, status, headers, errorToJsonBytes(error, JSON_OPTIONS), record.output);
}
