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

/** Traces the calls to a server, and its requests to others. */
export interface CallTraces extends RequestTraces {
  /**
   * Begins a call. Returns its trace, with the span that everything the call starts belongs to; undefined without a
   * trace.
   * @param traceparent the caller's
   */
  begin(traceparent: string | undefined, requestId: string): TraceParent | undefined;
  /** Ends a call. */
  end(call: TracedCall, traceparent: string | undefined): void;
}

/** The traces of a server that exports none: what a call starts belongs directly to the caller's span. */
export const PASSED_ON: CallTraces = {
  begin: (traceparent) => (traceparent === undefined ? undefined : parseTraceparent(traceparent)),
  end() {},
  beginRequest: () => undefined,
};
