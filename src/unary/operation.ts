import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { UnaryOperation } from "../rpc/routes.ts";
import { storedTexts } from "../services/call/stored-text.ts";
import { UnaryCall } from "./unary-call.ts";

/** What interceptors wrap; the package has no name for it. */
type AnyFn = ReturnType<Interceptor>;

/**
 * Runs an operation behind its interceptors. The result is a message of the
 * operation's output, or an answer of stored resources whose texts may be copied.
 */
export type OperationRun = (call: UnaryCall) => Promise<object>;

/** Wraps an operation in its interceptors, once for all of its calls. */
export function runOf({ method, implementation, interceptors }: UnaryOperation): OperationRun {
  const innermost: AnyFn = async (req) => {
    if (!(req instanceof UnaryCall)) throw new Error("an interceptor handed on a copy of the call");
    const answer = await implementation(req.message, req);
    return new Answer(req, storedTexts(answer) ? answer : create(method.output, answer as Init)) as never;
  };
  const outermost = interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
  return async (call) => (await outermost(call)).message;
}

type Init = MessageInitShape<DescMessage>;

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
