import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
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
import type { Eligibility } from "./eligibility.ts";
import { type OperationRun, runOf } from "./operation.ts";
import { requestBody } from "./request-body.ts";
import { responseJson } from "./response-json.ts";
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
  taken: Eligibility,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
  values: ContextValues,
  isRead: () => void,
) => Promise<void>;

/** Creates the unary path to an operation; docs/unary-path.md explains why there are two paths. */
export function createUnaryPath(report: ReportFault, parseBeside: ParseElsewhere): UnaryPath {
  const runs = new Map<UnaryOperation, OperationRun>();
  const runFor = (operation: UnaryOperation): OperationRun => {
    const known = runs.get(operation);
    if (known) return known;
    const run = runOf(operation);
    runs.set(operation, run);
    return run;
  };
  return async (operation, taken, req, res, record, values, isRead) => {
    const call = new UnaryCall(req, res, operation.method, values, taken.timeoutMs);
    let answer: WholeAnswer;
    try {
      runAuthentication(call);
      const body = requestBody(req, taken.lengthBytes, call);
      const bytes = body instanceof Promise ? await body : body;
      if (operation.requests.isLarge(bytes)) {
        const turn = turnOf(record, call.signal);
        call.message = await parseBeside(operation.requests, taken.isBinary, bytes, turn);
        values.set(parsedRequestKey, call.message);
      } else {
        call.message = operation.requests.parse(taken.isBinary, bytes);
      }
      // Large bytes of the message share the body's memory.
      if (!operation.requests.hasLargeBytes) isRead();
      answer = success(operation, taken, call, await runFor(operation)(call));
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
