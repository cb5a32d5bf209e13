import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { type IMetricReader, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import type { MetricSource } from "./metric.ts";
import { createProducer } from "./metric-producer.ts";

/** The metrics of a process. */
export interface ExportedMetrics {
  readonly sources: readonly MetricSource[];
  readonly version: string;
  /** When the process began counting, in milliseconds since 1970 UTC. */
  readonly startedAt: number;
  /** Called with the error of a metric source or a collector. */
  readonly onFailure: (error: unknown) => void;
}

/** Time between two exports to a collector. */
const EXPORT_EVERY_MS = 15_000;

/** Creates the function that reads the metrics and returns them in Prometheus's text format. */
export function createMetricsText(metrics: ExportedMetrics): () => Promise<string> {
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    metricProducers: [producerOf(metrics)],
  });
  providerOf(metrics, exporter);
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  return async () => {
    const { resourceMetrics } = await exporter.collect();
    return serializer.serialize(resourceMetrics);
  };
}

/**
 * Sends the metrics to a collector that accepts OTLP over HTTP.
 *
 * @param endpoint its URL, without the path
 * @returns a function that exports once more and then stops
 */
export async function startExport(
  metrics: ExportedMetrics,
  endpoint: string,
  headers: Readonly<Record<string, string>>,
): Promise<() => Promise<void>> {
  // Loaded on demand: it contains the entire OTLP format.
  const { OTLPMetricExporter } = await import("@opentelemetry/exporter-metrics-otlp-proto");
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url: new URL("/v1/metrics", endpoint).href, headers: { ...headers } }),
    exportIntervalMillis: EXPORT_EVERY_MS,
    metricProducers: [producerOf(metrics)],
  });
  const provider = providerOf(metrics, reader);
  return () => provider.shutdown();
}

const producerOf = ({ sources, startedAt, onFailure }: ExportedMetrics) =>
  createProducer(sources, startedAt, onFailure);

/** Returns a provider that names the service whose metrics a reader gets. */
function providerOf({ version }: ExportedMetrics, reader: IMetricReader): MeterProvider {
  const resource = resourceFromAttributes({ "service.name": "chartroom", "service.version": version });
  return new MeterProvider({ resource, readers: [reader] });
}
