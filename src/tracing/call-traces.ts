import type { RequestTraces } from "../domain/trace/request-traces.ts";
import { parseTraceparent, type TraceParent } from "../domain/trace/trace-context.ts";

/** A finished call, as the access log has it. */
export interface TracedCall {
  readonly requestId: string;
  readonly operation: string;
  readonly code: string;
  readonly status: number;
  readonly durationMs: number;
  readonly organization?: string;
}

/** The traces of the calls of a server, and of what it asks of others. */
export interface CallTraces extends RequestTraces {
  /**
   * Returns the trace of a call, and the span in it that what the call starts is part of; undefined where it has none.
   * @param traceparent the caller's
   */
  begin(traceparent: string | undefined, requestId: string): TraceParent | undefined;
  /** Takes a call that has ended. */
  end(call: TracedCall, traceparent: string | undefined): void;
}

/** The traces of a server that sends none: what a call starts is part of the caller's span itself. */
export const PASSED_ON: CallTraces = {
  begin: (traceparent) => (traceparent === undefined ? undefined : parseTraceparent(traceparent)),
  end() {},
  beginRequest: () => undefined,
};
