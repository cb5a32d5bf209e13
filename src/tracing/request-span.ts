import type { BegunRequest, TracedRequest } from "../domain/trace/request-traces.ts";
import { formatTraceparent, parseTraceparent, spanIdOf } from "../domain/trace/trace-context.ts";
import type { Span } from "./span.ts";

/** What a span of a request gets its id and its times from. */
export interface RequestSpanOptions {
  readonly now: () => number;
  /** Returns a new UUID v7. */
  readonly newId: () => string;
}

/** From this status on an answer is a failure of the request, by the conventions for clients of HTTP. */
const FIRST_ERROR_STATUS = 400;

/** From this status on the server that was asked has failed, which is never what was to be expected. */
const FIRST_FAULT_STATUS = 500;

/**
 * Begins the span of a request to another server, which is part of the span that sends it. Its name is the method alone
 * and its attributes are those of OpenTelemetry's conventions, without `url.full`: paths and queries have names, ids and
 * secrets in them.
 *
 * @returns undefined for a request that is in no trace, or in one that is not sent
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
