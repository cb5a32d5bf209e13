import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  type IMetricReader,
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import type { MetricSource } from "./metric.ts";
import { createProducer } from "./metric-producer.ts";

/** The destinations of metrics. */
export interface TelemetryTargets {
  /** The address at which they are served in Prometheus's text form. */
  readonly address?: { readonly host: string; readonly port: number } | undefined;
  /** The URL of a collector that takes OTLP over HTTP, without its path; undefined for none. */
  readonly otlpEndpoint?: string | undefined;
  /** Headers for that collector. */
  readonly otlpHeaders?: Readonly<Record<string, string>>;
}

export interface TelemetryOptions {
  readonly version: string;
  /** When the process started to count, in milliseconds since 1970 UTC. */
  readonly startedAt: number;
  /** Called with what a source of metrics, or a collector, failed with. */
  readonly onFailure: (error: unknown) => void;
}

export interface Telemetry {
  /** The URL of the metrics; undefined when they are not served. */
  readonly url: string | undefined;
  close(): Promise<void>;
}

/** Connections that scrape at the same time; further ones are closed. */
const MAX_CONNECTIONS = 16;
/** Time that a request may take to arrive. */
const REQUEST_MS = 10_000;
/** Time between two exports to a collector. */
const EXPORT_EVERY_MS = 15_000;

/**
 * Serves the metrics of sources and exports them.
 * @throws the error of a listener whose address cannot be used
 */
export async function startTelemetry(
  sources: readonly MetricSource[],
  { address, otlpEndpoint, otlpHeaders = {} }: TelemetryTargets,
  { version, startedAt, onFailure }: TelemetryOptions,
): Promise<Telemetry> {
  const producer = createProducer(sources, startedAt, onFailure);
  const readers: IMetricReader[] = [];
  let server: Server | undefined;
  if (address) {
    const exporter = new PrometheusExporter({ preventServerStart: true, metricProducers: [producer] });
    readers.push(exporter);
    server = await listen(createScrapeHandler(exporter), address);
  }
  if (otlpEndpoint !== undefined) readers.push(await createExport(otlpEndpoint, otlpHeaders, producer));
  const resource = resourceFromAttributes({ "service.name": "chartroom", "service.version": version });
  const provider = new MeterProvider({ resource, readers });
  return {
    url: server && urlOf(server),
    async close() {
      server?.close();
      server?.closeAllConnections();
      await provider.shutdown().catch(onFailure);
    },
  };
}

async function createExport(
  endpoint: string,
  headers: Readonly<Record<string, string>>,
  producer: MetricProducer,
): Promise<IMetricReader> {
  // Loaded on demand: it brings the whole form of OTLP.
  const { OTLPMetricExporter } = await import("@opentelemetry/exporter-metrics-otlp-proto");
  return new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url: new URL("/v1/metrics", endpoint).href, headers: { ...headers } }),
    exportIntervalMillis: EXPORT_EVERY_MS,
    metricProducers: [producer],
  });
}

function createScrapeHandler(exporter: PrometheusExporter) {
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  let collecting: Promise<string> | undefined;
  const collect = async () => {
    const { resourceMetrics } = await exporter.collect();
    return serializer.serialize(resourceMetrics);
  };
  return async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const [path] = (req.url ?? "").split("?");
    if (path !== "/metrics") return respond(res, 404, "the metrics are at /metrics\n");
    if (req.method !== "GET" && req.method !== "HEAD") return respond(res, 405, "GET /metrics\n");
    // Whoever asks meanwhile gets the same.
    collecting ??= collect().finally(() => {
      collecting = undefined;
    });
    const text = await collecting.catch(() => undefined);
    if (text === undefined) return respond(res, 500, "the metrics could not be collected; see the log\n");
    respond(res, 200, text, "text/plain; version=0.0.4; charset=utf-8");
  };
}

function respond(
  res: ServerResponse,
  status: number,
  text: string,
  type = "text/plain; charset=utf-8",
): void {
  res.writeHead(status, { "content-type": type, "cache-control": "no-store" });
  res.end(text);
}

async function listen(
  handle: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Server> {
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (req, res) => {
    void handle(req, res);
  });
  server.maxConnections = MAX_CONNECTIONS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => resolve());
  });
  return server.unref();
}

function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}/metrics`;
}
