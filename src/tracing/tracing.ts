import type { Outcome, StoreMeasures, TracedSubject } from "../domain/measures.ts";
import {
  isAmongSampled,
  parseTraceparent,
  spanIdOf,
  type TraceParent,
  traceIdOf,
  under,
} from "../domain/trace/trace-context.ts";
import type { SpanMeasures } from "../metrics/span-measures.ts";
import type { Reader } from "../store/store.ts";
import type { CallTraces, TracedCall } from "./call-traces.ts";
import { EndedSpans } from "./ended-spans.ts";
import { beginRequestSpan } from "./request-span.ts";
import type { Span } from "./span.ts";
import { createSpanExport } from "./span-export.ts";
import { SpanQueue } from "./span-queue.ts";

/** Maximum ended things whose rows have not been read yet; further ones are dropped. */
const MAX_ENDED = 10_000;
/** Time that reading the last of them may take, in milliseconds. */
const CLOSE_MS = 5_000;

export interface TracingOptions {
  /** The URL of a collector that accepts OTLP over HTTP, without its path. */
  readonly endpoint: string;
  /** Headers for the collector. */
  readonly headers: Readonly<Record<string, string>>;
  /** The sampling ratio of traces that begin here. */
  readonly ratio: number;
  readonly version: string;
  readonly store: { readonly reader: Reader; readonly measures: StoreMeasures };
  readonly measures: SpanMeasures;
  readonly now: () => number;
  /** Returns a new UUID v7. */
  readonly newId: () => string;
  /** Called with the error of an export or of reading rows. */
  readonly onFailure: (error: unknown) => void;
}

export interface Tracing extends CallTraces {
  /** Exports what has ended, within some seconds. The store must still be open. */
  close(): Promise<void>;
}

/** Exports the spans of calls, and of what this process ends in the store. */
export function startTracing(options: TracingOptions): Tracing {
  const { store, measures, ratio, onFailure } = options;
  const exporter = createSpanExport(options.endpoint, options.version, options.headers);
  const queue = new SpanQueue({ measures, send: exporter.send, onFailure });
  const ended = new EndedQueue(options, (spans) => queue.add(spans));
  const begin = (id: string): TraceParent => {
    const traceId = traceIdOf(id);
    return { traceId, parentSpanId: "", sampled: isAmongSampled(traceId, ratio) };
  };
  store.measures.traces = { begin, ended: (outcomes) => ended.add(outcomes) };
  const ofCall = (traceparent: string | undefined, requestId: string) =>
    (traceparent === undefined ? undefined : parseTraceparent(traceparent)) ?? begin(requestId);
  return {
    begin: (traceparent, requestId) => under(ofCall(traceparent, requestId), spanIdOf(requestId)),
    end(call, traceparent) {
      const trace = ofCall(traceparent, call.requestId);
      if (trace.sampled && hasSpan(call)) queue.add([callSpan(call, trace, options.now())]);
    },
    beginRequest: (request) => beginRequestSpan(request, options, (span) => queue.add([span])),
    async close() {
      store.measures.traces = undefined;
      await ended.close();
      await queue.close();
      await exporter.close().catch(onFailure);
    },
  };
}

/** Runner calls would be most of the spans, and pages and their files are of no interest. */
function hasSpan({ operation }: TracedCall): boolean {
  return operation.startsWith("service.v1.") || operation === "webhook";
}

function callSpan(call: TracedCall, { traceId, parentSpanId }: TraceParent, end: number): Span {
  const { requestId, operation, code, status, durationMs, organization } = call;
  return {
    traceId,
    spanId: spanIdOf(requestId),
    parentSpanId,
    name: operation,
    side: "server",
    start: end - durationMs,
    end,
    attributes: {
      "chartroom.request.id": requestId,
      "http.response.status_code": status,
      "rpc.response.status_code": code,
      ...(organization !== undefined && { "chartroom.organization.id": organization }),
    },
    hasFailed: status >= 500,
  };
}

type SendSpans = (spans: readonly Span[]) => void;

type Ended = readonly [of: Outcome["of"], subject: TracedSubject];

/** Reads the rows of what has ended, one after the other, after the commit that ended it. */
class EndedQueue {
  readonly #options: TracingOptions;
  readonly #send: SendSpans;
  readonly #spans: EndedSpans;
  readonly #waiting: Ended[] = [];
  #reading: Promise<void> | undefined;
  #readUntil = Number.POSITIVE_INFINITY;

  constructor(options: TracingOptions, send: SendSpans) {
    this.#options = options;
    this.#send = send;
    this.#spans = new EndedSpans(options.store.reader);
  }

  add(outcomes: readonly Outcome[]): void {
    for (const { of, subject } of outcomes) {
      if (!subject) continue;
      if (this.#waiting.length < MAX_ENDED) this.#waiting.push([of, subject]);
      // Reading it would have given at least one span.
      else this.#options.measures.dropped.queue++;
    }
    if (this.#waiting.length > 0) this.#reading ??= this.#readAll();
  }

  /** Reads what is queued, for up to 5 seconds; drops the rest. */
  async close(): Promise<void> {
    this.#readUntil = performance.now() + CLOSE_MS;
    await this.#reading;
  }

  async #readAll(): Promise<void> {
    const { measures, onFailure } = this.#options;
    while (this.#waiting.length > 0) {
      for (const ended of this.#waiting.splice(0)) {
        // Runs after the commit's turn of the event loop, and lets calls run between two reads.
        await new Promise((resolve) => setImmediate(resolve));
        if (performance.now() > this.#readUntil) {
          measures.dropped.queue++;
          continue;
        }
        try {
          this.#send(await this.#spans.read(...ended));
        } catch (error) {
          measures.dropped.queue++;
          onFailure(error);
        }
      }
    }
    this.#reading = undefined;
  }
}
