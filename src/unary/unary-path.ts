import { create, type Message } from "@bufbuild/protobuf";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { runAuthentication } from "../rpc/access/authorization.ts";
import type { CallRecord } from "../rpc/access/call-record.ts";
import { hasReason, type ReportFault, toConnectError } from "../rpc/error/error.ts";
import type { BodyAccount } from "../rpc/request/arriving-bytes.ts";
import { type ParseElsewhere, parsedRequestKey, turnOf } from "../rpc/request/parsed-request.ts";
import type { UnaryOperation } from "../rpc/routes.ts";
import type { Eligibility } from "./eligibility.ts";
import { type HttpRequest, type HttpResponse, UnaryCall } from "./unary-call.ts";
import type { Init, WholeResponse } from "./unary-form.ts";

/**
 * Handles one eligible request, errors included.
 *
 * @param values the results of the authentication, for the interceptors and the
 *   operation
 * @param body counts the body of the request; released once nothing references the
 *   bytes any more, unless the call fails before that
 */
export type UnaryPath = (
  operation: UnaryOperation,
  eligible: Eligibility,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
  values: ContextValues,
  body: BodyAccount,
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
  return async (operation, { form, timeoutMs }, req, res, record, values, body) => {
    const { protocolName, isBinary } = form;
    const call = new UnaryCall(req, res, operation.method, values, { protocolName, timeoutMs });
    let response: WholeResponse;
    try {
      runAuthentication(call);
      const read = form.read(operation, req, call, body);
      const bytes = read instanceof Promise ? await read : read;
      if (operation.requests.isLarge(bytes)) {
        const turn = turnOf(record, call.signal);
        call.message = await parseElsewhere(operation.requests, isBinary, bytes, turn);
        values.set(parsedRequestKey, call.message);
      } else {
        call.message = operation.requests.parse(isBinary, bytes);
      }
      // Large `bytes` fields of the message share the body's memory.
      if (!operation.requests.hasLargeBytes) body.release();
      const returned = await operationRunner(operation)(call);
      response = form.success(operation, call, returned.takeMessage());
      call.end();
    } catch (thrown) {
      call.end(thrown);
      const error = toConnectError(thrown, record, report);
      record.code = error.code;
      response = form.failure(call, error, thrown === error && hasReason(error));
    }
    await form.write(req, res, response, record.output);
  };
}

/** The function that interceptors wrap; the package has no name for it. */
type AnyFn = ReturnType<Interceptor>;

/** Runs an operation through its interceptors. */
type RunOperation = (call: UnaryCall) => Promise<CallResponse>;

/** Wraps an operation in its interceptors, once for all of its calls. */
export function wrapOperation({ method, implementation, interceptors }: UnaryOperation): RunOperation {
  const innermost: AnyFn = async (req) => {
    if (!(req instanceof UnaryCall)) throw new Error("an interceptor handed on a copy of the call");
    const response = await implementation(req.message, req);
    return new CallResponse(req, create(method.output, response as Init)) as never;
  };
  const outermost = interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
  return (call) => outermost(call) as Promise<unknown> as Promise<CallResponse>;
}

/** The interceptors' view of the response. */
class CallResponse {
  readonly stream = false;
  readonly #call: UnaryCall;
  #message: Message | undefined;

  constructor(call: UnaryCall, message: Message) {
    this.#call = call;
    this.#message = message;
  }

  get message(): Message {
    if (!this.#message) throw new Error("the message has been taken");
    return this.#message;
  }

  /**
   * Returns the message and removes the reference to it. The promises of a call that has waited survive collections of
   * the young generation, and would promote everything that the response references to the old generation.
   */
  takeMessage(): Message {
    const { message } = this;
    this.#message = undefined;
    return message;
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
