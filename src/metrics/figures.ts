import type { Histogram } from "../domain/measures.ts";
import type { Figure } from "../domain/server-health.ts";
import type { Labels, Metric } from "./metric.ts";

/** The quantiles of a histogram that are shown, and their name suffixes. */
const SHARES = [
  [0.5, "p50"],
  [0.99, "p99"],
] as const;

/** Returns metrics as figures; a histogram becomes its median and its 99th percentile. */
export function figuresOf(metrics: readonly Metric[]): Figure[] {
  return metrics.flatMap((metric) => {
    const { help: description, unit, kind } = metric;
    const name = metric.name.replaceAll(".", "_");
    if (kind !== "histogram") {
      const counted = kind === "counter" ? `${name}_total` : name;
      return metric.values.map(([labels, value]) => ({
        ...{ name: counted, description, unit, value },
        labels: namedLabels(labels),
      }));
    }
    return metric.values.flatMap(([labels, histogram]) =>
      SHARES.map(([share, ending]) => ({
        ...{ name: `${name}_${ending}`, description, unit, labels: namedLabels(labels) },
        value: within(histogram, share),
      })),
    );
  });
}

const namedLabels = (labels: Labels): Labels =>
  Object.fromEntries(Object.entries(labels).map(([name, value]) => [name.replaceAll(".", "_"), value]));

/**
 * Returns the bound of the bucket that contains a quantile; 0 without values, and the last bound for values above it.
 */
function within({ bounds, counts, count }: Histogram, share: number): number {
  let left = share * count;
  if (left === 0) return 0;
  for (const [bucket, values] of counts.entries()) {
    left -= values;
    if (left <= 0) return bounds[bucket] ?? bounds.at(-1) ?? 0;
  }
  return bounds.at(-1) ?? 0;
}
