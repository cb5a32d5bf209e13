import { ConnectError } from "@connectrpc/connect";
import type { Admission } from "../../rpc/access/admission.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { capDeadline, deadlineMs } from "../../rpc/deadline.ts";
import { deadlinePassed } from "../../rpc/request/request-failure.ts";
import { waitForOutputSpace } from "../../rpc/response/output-limit.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";

interface WaitOptions {
  readonly admission: Pick<Admission, "draining">;
  /** Maximum deadline. */
  readonly maxTimeoutMs: number;
}

/**
 * Delays a call until earlier responses were sent; its body stays unread. The
 * wait counts against the call's deadline.
 *
 * @returns the error with which the call must end, which its protocol sends
 */
export async function waitBeforeBody(
  room: Promise<void>,
  { maxTimeoutMs, admission }: WaitOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<ConnectError | undefined> {
  const began = performance.now();
  const timeoutMs = deadlineMs(req.headers);
  const over = new AbortController();
  const expire = () => over.abort(deadlinePassed());
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, Math.min(timeoutMs, maxTimeoutMs));
  const leave = () => over.abort();
  res.once("close", leave);
  try {
    if (record.output) await waitForOutputSpace(record.output, room, over.signal, admission.draining);
    if (timeoutMs === undefined) return undefined;
    capDeadline(req.headers, Math.max(0, Math.ceil(timeoutMs - (performance.now() - began))));
    return undefined;
  } catch (error) {
    return ConnectError.from(error);
  } finally {
    clearTimeout(timer);
    res.off("close", leave);
  }
}
