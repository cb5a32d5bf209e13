import type { Histogram } from "../domain/measures.ts";

/** Labels of a value. Each comes from a fixed set: no id, no name of a resource or person, no path of a request. */
export type Labels = Readonly<Record<string, string>>;

interface Described {
  /** By the conventions of OpenTelemetry: dots between words. */
  readonly name: string;
  readonly help: string;
  /** By UCUM: `s`, `By`, `{item}`, `1`. */
  readonly unit: string;
}

/** Values of one metric at one time. */
export type Metric = Described &
  (
    | { readonly kind: "counter" | "gauge"; readonly values: readonly (readonly [Labels, number])[] }
    | { readonly kind: "histogram"; readonly values: readonly (readonly [Labels, Histogram])[] }
  );

/** Returns the current metrics; called once per collection. */
export type MetricSource = () => readonly Metric[] | Promise<readonly Metric[]>;
