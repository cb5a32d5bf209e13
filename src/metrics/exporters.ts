import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { type IMetricReader, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import type { MetricSource } from "./metric.ts";
import { createProducer } from "./metric-producer.ts";

/** The metrics of a process. */
export interface ExportedMetrics {
  readonly sources: readonly MetricSource[];
  readonly version: string;
  /** When the process started to count, in milliseconds since 1970 UTC. */
  readonly startedAt: number;
  /** Called with what a source of metrics, or a collector, failed with. */
  readonly onFailure: (error: unknown) => void;
}

/** Time between two exports to a collector. */
const EXPORT_EVERY_MS = 15_000;

/** Creates the function that reads the metrics and returns them in Prometheus's text form. */
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
 * Sends the metrics to a collector that takes OTLP over HTTP.
 *
 * @param endpoint its URL, without the path
 * @returns a function that sends them once more and ends it
 */
export async function startExport(
  metrics: ExportedMetrics,
  endpoint: string,
  headers: Readonly<Record<string, string>>,
): Promise<() => Promise<void>> {
  // Loaded on demand: it brings the whole form of OTLP.
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

/** Returns a provider, which names the service that the metrics of a reader are of. */
function providerOf({ version }: ExportedMetrics, reader: IMetricReader): MeterProvider {
  const resource = resourceFromAttributes({ "service.name": "chartroom", "service.version": version });
  return new MeterProvider({ resource, readers: [reader] });
}
