import { type HrTime, SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import type { Span } from "./span.ts";

/** Time that an export may take, including its retries. */
const EXPORT_MS = 5_000;

/** The code for a successful export in OpenTelemetry. */
const SUCCESS = 0;

export interface SpanExport {
  /** @throws the error of a collector that does not accept them */
  send(spans: readonly Span[]): Promise<void>;
  close(): Promise<void>;
}

/** Creates the exporter that sends spans to a collector by OTLP over HTTP. */
export function createSpanExport(
  endpoint: string,
  version: string,
  headers: Readonly<Record<string, string>>,
): SpanExport {
  const exporter = new OTLPTraceExporter({
    url: `${endpoint}/v1/traces`,
    timeoutMillis: EXPORT_MS,
    headers: { ...headers },
  });
  const resource = resourceFromAttributes({ "service.name": "chartroom", "service.version": version });
  return {
    send: (spans) =>
      new Promise((resolve, reject) =>
        exporter.export(
          spans.map((span) => toReadable(span, resource)),
          ({ code, error }) =>
            code === SUCCESS ? resolve() : reject(error ?? new Error("the collector did not take the spans")),
        ),
      ),
    close: () => exporter.shutdown(),
  };
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/** Spans are built from rows once they have ended, so no tracer keeps them in memory. */
function toReadable(span: Span, resource: Resource): ReadableSpan {
  const { traceId, spanId, parentSpanId, start, end } = span;
  const traceFlags = TraceFlags.SAMPLED;
  return {
    name: span.name,
    kind: KINDS[span.side ?? "internal"],
    spanContext: () => ({ traceId, spanId, traceFlags }),
    ...(parentSpanId !== "" && { parentSpanContext: { traceId, spanId: parentSpanId, traceFlags } }),
    startTime: toTime(start),
    endTime: toTime(end),
    duration: toTime(Math.max(0, end - start)),
    ended: true,
    status: { code: span.hasFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: span.attributes,
    links: [],
    events: [],
    resource,
    instrumentationScope: { name: "chartroom" },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function toTime(milliseconds: number): HrTime {
  const seconds = Math.floor(milliseconds / 1000);
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)];
}
