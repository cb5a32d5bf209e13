import { DURATION_BOUNDS, Histogram } from "../domain/measures.ts";
import type { Metric } from "./metric.ts";

/** A finished request, in words of fixed sets. */
export interface MeasuredCall {
  /** The full name of the operation, `webhook`, or `none`. */
  readonly operation: string;
  /** The code of the protocol: `ok`, `not_found` and so on. */
  readonly code: string;
  readonly status: number;
  readonly durationMs: number;
  readonly method: string;
}

const METHODS = new Set(["GET", "POST", "OPTIONS", "HEAD", "PUT", "DELETE", "PATCH"]);

/** Counts requests and calls. To record one costs three look-ups and two numbers. */
export class CallMeasures {
  readonly #calls = new Map<string, Map<string, Histogram>>();
  readonly #requests = new Map<string, Map<number, Histogram>>();
  #active = 0;

  begin(): void {
    this.#active++;
  }

  end({ operation, code, status, durationMs, method }: MeasuredCall): void {
    this.#active--;
    const seconds = durationMs / 1000;
    if (operation.includes("/")) histogramOf(this.#calls, operation, code).record(seconds);
    const known = METHODS.has(method) ? method : "_OTHER";
    histogramOf(this.#requests, `${known} ${routeOf(operation)}`, status).record(seconds);
  }

  readonly metrics = (): readonly Metric[] => [
    {
      name: "rpc.server.call.duration",
      help: "Duration of calls, from their first byte to their last.",
      unit: "s",
      kind: "histogram",
      values: [...this.#calls].flatMap(([operation, byCode]) =>
        [...byCode].map(([code, histogram]) => {
          const labels = { "rpc.method": operation, "rpc.response.status_code": code };
          return [labels, histogram] as const;
        }),
      ),
    },
    {
      name: "http.server.request.duration",
      help: "Duration of HTTP requests, without probes and preflights.",
      unit: "s",
      kind: "histogram",
      values: [...this.#requests].flatMap(([key, byStatus]) => {
        const [method = "", route = ""] = key.split(" ");
        return [...byStatus].map(([status, histogram]) => {
          const labels = {
            "http.request.method": method,
            ...(route && { "http.route": route }),
            "http.response.status_code": String(status),
          };
          return [labels, histogram] as const;
        });
      }),
    },
    {
      name: "http.server.active_requests",
      help: "HTTP requests that are being answered, open streams among them.",
      unit: "{request}",
      kind: "gauge",
      values: [[{}, this.#active]],
    },
  ];
}

/** Returns the metrics of a server besides its calls. */
export const serverMetrics = (openStreams: number, isReady: boolean): readonly Metric[] => [
  {
    name: "chartroom.streams.open",
    help: "Open streams of clients; those of runners are not counted.",
    unit: "{stream}",
    kind: "gauge",
    values: [[{}, openStreams]],
  },
  {
    name: "chartroom.ready",
    help: "1 while the server is ready, as /readyz says, else 0.",
    unit: "1",
    kind: "gauge",
    values: [[{}, isReady ? 1 : 0]],
  },
];

/** Returns the template of the path of an operation; empty for a path that names none. */
function routeOf(operation: string): string {
  if (operation === "webhook") return "/workflows/{workflow}/webhooks";
  return operation.includes("/") ? "/api/{service}/{operation}" : "";
}

function histogramOf<K>(all: Map<string, Map<K, Histogram>>, name: string, key: K): Histogram {
  const byKey = all.get(name);
  const known = byKey?.get(key);
  if (known) return known;
  const histogram = new Histogram(DURATION_BOUNDS);
  if (byKey) byKey.set(key, histogram);
  else all.set(name, new Map([[key, histogram]]));
  return histogram;
}
