import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { DomainError } from "../../domain/error.ts";
import { callRecordKey } from "../access/call-record.ts";
import { type ReportFault, toConnectError } from "./error.ts";

/**
 * Returns the outermost interceptor: every error of the operation leaves as one
 * of the catalogue, and the record of the call gets its code.
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

/** Returns whether the caller went away in the middle of a call, which is no fault of the server. */
function clientCancelled(thrown: unknown, req: { readonly signal: AbortSignal }): ConnectError | undefined {
  // Before the signal is read, which may have to be created for it.
  if (thrown instanceof DomainError || thrown instanceof ConnectError) return undefined;
  const { aborted, reason } = req.signal;
  if (!aborted || thrown !== reason) return undefined;
  return new ConnectError("the caller cancelled the call", Code.Canceled);
}

/** Errors of a stream occur while it is read, long after `next` has returned. */
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
