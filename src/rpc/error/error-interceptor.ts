import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { DomainError } from "../../domain/error.ts";
import { callRecordKey } from "../access/call-record.ts";
import { type ReportFault, toConnectError } from "./error.ts";

/**
 * The outermost interceptor: whatever the operation throws leaves as an error
 * of the catalogue, and the record of the call learns its code.
 */
export function errorInterceptor(report: ReportFault): Interceptor {
  return (next) => async (req) => {
    const record = req.contextValues.get(callRecordKey);
    const leave = (thrown: unknown): ConnectError => {
      const error = toConnectError(clientCancelled(thrown, req) ?? thrown, record, report);
      record.code = error.code;
      return error;
    };
    try {
      const res = await next(req);
      if (!res.stream) return res;
      return { ...res, message: guarded(res.message, leave) };
    } catch (thrown) {
      throw leave(thrown);
    }
  };
}

/** That a caller goes away in the middle of a call is no fault of the server. */
function clientCancelled(thrown: unknown, req: { readonly signal: AbortSignal }): ConnectError | undefined {
  // Before the look at the signal, which may have to be made for it.
  if (thrown instanceof DomainError || thrown instanceof ConnectError) return undefined;
  const { aborted, reason } = req.signal;
  if (!aborted || thrown !== reason) return undefined;
  return new ConnectError("the caller gave the call up", Code.Canceled);
}

/** Errors of a stream come while it is read, long after `next` has answered. */
async function* guarded<T>(
  messages: AsyncIterable<T>,
  leave: (thrown: unknown) => ConnectError,
): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (thrown) {
    throw leave(thrown);
  }
}
