import type { BegunRequest, TracedRequest } from "../domain/trace/request-traces.ts";
import { formatTraceparent, parseTraceparent, spanIdOf } from "../domain/trace/trace-context.ts";
import type { Span } from "./span.ts";

/** What a span of a request gets its id and its times from. */
export interface RequestSpanOptions {
  readonly now: () => number;
  /** Returns a new UUID v7. */
  readonly newId: () => string;
}

/** Statuses from this one on are errors, by OpenTelemetry's conventions for HTTP clients. */
const FIRST_ERROR_STATUS = 400;

/** Statuses from this one on are failures of the other server, which are never expected. */
const FIRST_FAULT_STATUS = 500;

/**
 * Begins the span of a request to another server, under the span that sends it. Its name is only the method, and its
 * attributes are those of OpenTelemetry's conventions without `url.full`: paths and queries contain names, ids and
 * secrets.
 *
 * @returns undefined for a request without a trace, or in a trace that is not exported
 */
export function beginRequestSpan(
  { method, url, traceparent = "" }: BegunRequest,
  { now, newId }: RequestSpanOptions,
  send: (span: Span) => void,
): TracedRequest | undefined {
  const trace = parseTraceparent(traceparent);
  if (!trace?.sampled) return undefined;
  const spanId = spanIdOf(newId());
  const start = now();
  return {
    traceparent: formatTraceparent(trace, spanId),
    end(outcome) {
      const status = "status" in outcome ? outcome.status : undefined;
      const errorType = errorTypeOf(outcome);
      send({
        traceId: trace.traceId,
        spanId,
        parentSpanId: trace.parentSpanId,
        name: method,
        side: "client",
        start,
        end: now(),
        attributes: {
          "http.request.method": method,
          "server.address": url.hostname.replace(/^\[|\]$/g, ""),
          "server.port": portOf(url),
          ...(status !== undefined && { "http.response.status_code": status }),
          ...(errorType !== undefined && { "error.type": errorType }),
        },
        hasFailed: errorType !== undefined,
      });
    },
  };
}

function errorTypeOf(outcome: Parameters<TracedRequest["end"]>[0]): string | undefined {
  if ("errorType" in outcome) return outcome.errorType;
  const first = outcome.mayBeRefused ? FIRST_FAULT_STATUS : FIRST_ERROR_STATUS;
  return outcome.status >= first ? String(outcome.status) : undefined;
}

function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "http:" ? 80 : 443) : Number(port);
}
