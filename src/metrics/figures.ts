import type { Histogram } from "../domain/measures.ts";
import type { Figure } from "../domain/server-health.ts";
import type { Labels, Metric } from "./metric.ts";

/** The shares of values of a histogram that are shown, and the endings of their names. */
const SHARES = [
  [0.5, "p50"],
  [0.99, "p99"],
] as const;

/** Returns metrics as figures, each of a histogram as its median and the value that 99 of 100 stay within. */
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

/** Returns the bound of the bucket within which a share of the values stays; 0 without any, and the last for what is above. */
function within({ bounds, counts, count }: Histogram, share: number): number {
  let left = share * count;
  if (left === 0) return 0;
  for (const [bucket, values] of counts.entries()) {
    left -= values;
    if (left <= 0) return bounds[bucket] ?? bounds.at(-1) ?? 0;
  }
  return bounds.at(-1) ?? 0;
}
