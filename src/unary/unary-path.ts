import { create, type DescMessage, type MessageInitShape, toJson, toJsonString } from "@bufbuild/protobuf";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  contentTypeUnaryJson,
  contentTypeUnaryProto,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { runAuthentication } from "../rpc/access/authorization.ts";
import type { CallRecord } from "../rpc/access/call-record.ts";
import { hasReason, type ReportFault, toConnectError } from "../rpc/error/error.ts";
import { JSON_OPTIONS } from "../rpc/request/json-options.ts";
import { type ParseElsewhere, parsedRequestKey, turnOf } from "../rpc/request/parsed-request.ts";
import type { UnaryOperation } from "../rpc/routes.ts";
import { type StoredTexts, storedTexts } from "../services/call/stored-text.ts";
import type { Eligibility } from "./eligibility.ts";
import { requestBody } from "./request-body.ts";
import { type HttpRequest, type HttpResponse, UnaryCall } from "./unary-call.ts";
import { type WholeAnswer, writeAnswer } from "./write-answer.ts";

/**
 * Handles one eligible request, errors included.
 *
 * @param values the results of the authentication, for the interceptors and the
 *   operation
 * @param isRead called once nothing holds the body any more; not when it is never
 *   read
 */
export type UnaryPath = (
  operation: UnaryOperation,
  eligible: Eligibility,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
  values: ContextValues,
  isRead: () => void,
) => Promise<void>;

/** Creates the unary path to an operation; docs/unary-path.md explains why there are two paths. */
export function createUnaryPath(report: ReportFault, parseElsewhere: ParseElsewhere): UnaryPath {
  const runs = new Map<UnaryOperation, RunOperation>();
  const operationRunner = (operation: UnaryOperation): RunOperation => {
    const known = runs.get(operation);
    if (known) return known;
    const run = wrapOperation(operation);
    runs.set(operation, run);
    return run;
  };
  return async (operation, eligible, req, res, record, values, isRead) => {
    const call = new UnaryCall(req, res, operation.method, values, eligible.timeoutMs);
    let answer: WholeAnswer;
    try {
      runAuthentication(call);
      const body = requestBody(req, eligible.lengthBytes, call);
      const bytes = body instanceof Promise ? await body : body;
      if (operation.requests.isLarge(bytes)) {
        const turn = turnOf(record, call.signal);
        call.message = await parseElsewhere(operation.requests, eligible.isBinary, bytes, turn);
        values.set(parsedRequestKey, call.message);
      } else {
        call.message = operation.requests.parse(eligible.isBinary, bytes);
      }
      // Large bytes of the message share the body's memory.
      if (!operation.requests.hasLargeBytes) isRead();
      answer = success(operation, eligible, call, await operationRunner(operation)(call));
      call.end();
    } catch (thrown) {
      call.end(thrown);
      answer = failure(call, thrown, record, report);
    }
    await writeAnswer(req, res, answer, record.output);
  };
}

type Init = MessageInitShape<DescMessage>;

function success(
  { method: { output }, serialization }: UnaryOperation,
  { isBinary }: Eligibility,
  call: UnaryCall,
  answer: object,
): WholeAnswer {
  return {
    header: call.responseHeaderIfAny,
    trailer: call.responseTrailerIfAny,
    status: 200,
    contentType: isBinary ? contentTypeUnaryProto : contentTypeUnaryJson,
    body: isBinary
      ? serialization.getO(true).serialize(create(output, answer as Init))
      : responseJson(output, answer),
    mayCompress: true,
  };
}

/**
 * Returns the response to a call that failed. Errors from outside the catalogue
 * are sent uncompressed even to clients that accept compressed responses, as on
 * the other path.
 */
function failure(call: UnaryCall, thrown: unknown, record: CallRecord, report: ReportFault): WholeAnswer {
  const error = toConnectError(thrown, record, report);
  record.code = error.code;
  mergeNonProtocolHeaders(call.responseHeader, error.metadata);
  return {
    header: call.responseHeaderIfAny,
    trailer: call.responseTrailerIfAny,
    status: codeToHttpStatus(error.code),
    contentType: contentTypeUnaryJson,
    body: errorToJsonBytes(error, JSON_OPTIONS),
    mayCompress: thrown === error && hasReason(error),
  };
}

/** What interceptors wrap; the package has no name for it. */
type AnyFn = ReturnType<Interceptor>;

/**
 * Runs an operation behind its interceptors. The result is a message of the
 * operation's output, or an answer of stored resources whose texts may be copied.
 */
type RunOperation = (call: UnaryCall) => Promise<object>;

/** Wraps an operation in its interceptors, once for all of its calls. */
export function wrapOperation({ method, implementation, interceptors }: UnaryOperation): RunOperation {
  const innermost: AnyFn = async (req) => {
    if (!(req instanceof UnaryCall)) throw new Error("an interceptor handed on a copy of the call");
    const answer = await implementation(req.message, req);
    return new Answer(req, storedTexts(answer) ? answer : create(method.output, answer as Init)) as never;
  };
  const outermost = interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
  return async (call) => (await outermost(call)).message;
}

/** The interceptors' view of the response. */
class Answer {
  readonly stream = false;
  readonly message: object;
  readonly #call: UnaryCall;

  constructor(call: UnaryCall, message: object) {
    this.#call = call;
    this.message = message;
  }

  get service() {
    return this.#call.service;
  }

  get method() {
    return this.#call.method;
  }

  get header(): Headers {
    return this.#call.responseHeader;
  }

  get trailer(): Headers {
    return this.#call.responseTrailer;
  }
}

/**
 * Returns the JSON of a response, in the form of all responses. This is the one
 * place that copies the text of stored resources instead of writing it from
 * messages; both are equal, as the text was written in this form when it was
 * stored.
 *
 * @param answer a message of the schema, or one that {@link storedTexts} knows
 */
export function responseJson(schema: DescMessage, answer: object): string {
  const stored = storedTexts(answer);
  if (!stored) return toJsonString(schema, answer as never, JSON_OPTIONS);
  const { field, rest } = stored;
  const parts = partsOf(schema);
  if (!parts.some(({ localName }) => localName === field)) throw new Error(`${schema} has no field ${field}`);
  const json =
    parts.length === 1 ? {} : (toJson(schema, create(schema, rest as Init), JSON_OPTIONS) as JsonObject);
  let text = "";
  for (const { jsonName, localName, opening } of parts) {
    const value = localName === field ? copied(stored) : JSON.stringify(json[jsonName]);
    if (value !== undefined) text += (text === "" ? "{" : ",") + opening + value;
  }
  return `${text}}`;
}

type JsonObject = Readonly<Record<string, unknown>>;

function copied({ texts }: StoredTexts): string {
  return typeof texts === "string" ? texts : `[${texts.join(",")}]`;
}

interface Part {
  readonly localName: string;
  readonly jsonName: string;
  /** The name as JSON text, with its colon. */
  readonly opening: string;
}

const known = new Map<DescMessage, readonly Part[]>();

/** Returns the fields in the order in which toJson writes them. */
function partsOf(schema: DescMessage): readonly Part[] {
  let parts = known.get(schema);
  if (!parts) {
    const sorted = schema.fields.toSorted((one, other) => one.number - other.number);
    parts = sorted.map(({ localName, jsonName }) => ({
      localName,
      jsonName,
      opening: `${JSON.stringify(jsonName)}:`,
    }));
    known.set(schema, parts);
  }
  return parts;
}
