import { DURATION_BOUNDS, Histogram } from "../domain/measures.ts";
import type { Metric } from "./metric.ts";

/** A finished request, described by values of fixed sets. */
export interface MeasuredCall {
  /** The full name of the operation, or another name of the access log, such as `webhook` or `none`. */
  readonly operation: string;
  /** The code of the protocol: `ok`, `not_found` and so on. */
  readonly code: string;
  readonly status: number;
  readonly durationMs: number;
}

/** The path template of operations. Only their names contain a slash in the access log. */
const OPERATION_ROUTE = "/api/{service}/{operation}";

/** The templates of other paths, by their names in the access log. */
const ROUTES: ReadonlyMap<string, string> = new Map([
  ["webhook", "/workflows/{workflow}/webhooks"],
  ["scim", "/scim/v2/{path}"],
  ["mcp", "/mcp"],
  ["sign-in", "/sign-in/{path}"],
  ["reference", "/docs/api/{path}"],
  ["console", "/{page}"],
]);

const METHODS = new Set(["GET", "POST", "OPTIONS", "HEAD", "PUT", "DELETE", "PATCH"]);

/** The durations of the requests to one route, by method and status. */
type RouteMeasures = Map<string, Map<number, Histogram>>;

/** Counts requests and calls. Recording one costs four look-ups and five numbers. */
export class CallMeasures {
  /** By operation, then by code. */
  readonly #calls = new Map<string, Map<string, Histogram>>();
  readonly #ofOperations: RouteMeasures = new Map();
  /** By template; undefined is the key for unknown paths. */
  readonly #ofOthers = new Map<string | undefined, RouteMeasures>();
  #active = 0;

  begin(): void {
    this.#active++;
  }

  /** @param method the HTTP method, as the client chose it */
  end({ operation, code, status, durationMs }: MeasuredCall, method: string): void {
    this.#active--;
    const seconds = durationMs / 1000;
    const isOperation = operation.includes("/");
    if (isOperation) histogramOf(this.#calls, operation, code).record(seconds);
    const requests = isOperation ? this.#ofOperations : this.#requestsTo(ROUTES.get(operation));
    histogramOf(requests, METHODS.has(method) ? method : "_OTHER", status).record(seconds);
  }

  #requestsTo(route: string | undefined): RouteMeasures {
    const known = this.#ofOthers.get(route);
    if (known) return known;
    const measures: RouteMeasures = new Map();
    this.#ofOthers.set(route, measures);
    return measures;
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
      values: [
        ...requestsTo(OPERATION_ROUTE, this.#ofOperations),
        ...[...this.#ofOthers].flatMap(([route, measures]) => requestsTo(route, measures)),
      ],
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

/** Returns the metrics of a server other than those of its calls. */
export const serverMetrics = (
  openStreams: number,
  checks: readonly (readonly [check: string, isWell: boolean])[],
): readonly Metric[] => [
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
    values: [[{}, checks.every(([, isWell]) => isWell) ? 1 : 0]],
  },
  {
    name: "chartroom.check.well",
    help: "Each check of /readyz: 1 while it is well, 0 while it keeps the server from being ready.",
    unit: "1",
    kind: "gauge",
    values: checks.map(([check, isWell]) => [{ "chartroom.check": check }, isWell ? 1 : 0]),
  },
];

/** Returns the metric of calls that were rejected because of a limit. */
export const limitMetrics = (
  refused: readonly (readonly [limit: string, count: number])[],
): readonly Metric[] => [
  {
    name: "chartroom.limit.refusals",
    help: "Calls and connections that were refused, by whose limit it was.",
    unit: "{refusal}",
    kind: "counter",
    values: refused.map(([limit, count]) => [{ "chartroom.limit": limit }, count]),
  },
];

/** @param route the template of the path; undefined for unknown paths */
function requestsTo(route: string | undefined, measures: RouteMeasures) {
  return [...measures].flatMap(([method, byStatus]) =>
    [...byStatus].map(([status, histogram]) => {
      const labels = {
        "http.request.method": method,
        ...(route && { "http.route": route }),
        "http.response.status_code": String(status),
      };
      return [labels, histogram] as const;
    }),
  );
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
