import { Code, ConnectError } from "@connectrpc/connect";

/** A request that has taken longer than it gave itself. */
export function deadlinePassed(): ConnectError {
  return new ConnectError("the deadline of the request passed", Code.DeadlineExceeded);
}

/** A body that broke off: the doing of whoever sent it, and no fault of the server. */
export function bodyCutOff(cause?: unknown): ConnectError {
  return new ConnectError("the request body was cut off", Code.Canceled, undefined, undefined, cause);
}
