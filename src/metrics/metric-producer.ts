import { type HrTime, ValueType } from "@opentelemetry/api";
import { emptyResource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type CollectionResult,
  DataPointType,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { Metric, MetricSource } from "./metric.ts";

/**
 * Returns the metrics of sources as OpenTelemetry's readers expect them. When a source fails, only its metrics are
 * missing, and `onFailure` is called with the error.
 */
export function createProducer(
  sources: readonly MetricSource[],
  startedAt: number,
  onFailure: (error: unknown) => void,
): MetricProducer {
  return {
    async collect(): Promise<CollectionResult> {
      const results = await Promise.allSettled(sources.map(async (source) => source()));
      const errors = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
      for (const error of errors) onFailure(error);
      const found = results.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
      const times = { startTime: toTime(startedAt), endTime: toTime(Date.now()) };
      const metrics = found.map((metric) => toMetricData(metric, times));
      const scope = { name: "chartroom" };
      return { resourceMetrics: { resource: emptyResource(), scopeMetrics: [{ scope, metrics }] }, errors };
    },
  };
}

interface Times {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

function toMetricData(metric: Metric, times: Times): MetricData {
  const { name, help, unit } = metric;
  const descriptor = { name, description: help, unit, valueType: ValueType.DOUBLE };
  const base = { descriptor, aggregationTemporality: AggregationTemporality.CUMULATIVE };
  if (metric.kind === "histogram") {
    return {
      ...base,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: metric.values.map(([attributes, { bounds, counts, sum, count }]) => ({
        ...times,
        attributes,
        value: { buckets: { boundaries: [...bounds], counts: [...counts] }, sum, count },
      })),
    };
  }
  const dataPoints = metric.values.map(([attributes, value]) => ({ ...times, attributes, value }));
  return metric.kind === "counter"
    ? { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...base, dataPointType: DataPointType.GAUGE, dataPoints };
}

function toTime(milliseconds: number): HrTime {
  const seconds = Math.floor(milliseconds / 1000);
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)];
}
