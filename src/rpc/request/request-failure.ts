import { Code, ConnectError } from "@connectrpc/connect";

/** Returns the error of a request that has exceeded its deadline. */
export function deadlinePassed(): ConnectError {
  return new ConnectError("the deadline of the request passed", Code.DeadlineExceeded);
}

/** Returns the error of a body that broke off: the sender's doing, and no fault of the server. */
export function bodyAborted(cause?: unknown): ConnectError {
  return new ConnectError("the request body was cut off", Code.Canceled, undefined, undefined, cause);
}
