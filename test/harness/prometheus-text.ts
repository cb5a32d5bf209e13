/** A metric as the text form of Prometheus shows it. */
export interface ParsedMetric {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Each value with its full name, and its labels. */
  readonly samples: readonly {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\+Inf|-?[0-9.]+(?:e[+-]?[0-9]+)?)$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;

/**
 * Parses the text form strictly: each metric has help and type before its values, no value is there twice, and the buckets
 * of histograms rise to their count.
 * @throws for a line that breaks the form
 */
export function parsePrometheus(text: string): ReadonlyMap<string, ParsedMetric> {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const metrics = new Map<string, ParsedMetric & { samples: ParsedMetric["samples"][number][] }>();
  let [help, current] = ["", ""];
  const seen = new Set<string>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, word, about = "", rest = ""] =
      new RegExp(`^# (HELP|TYPE|UNIT) (${NAME}) (.*)$`).exec(line) ?? [];
    if (line.startsWith("#")) {
      if (!word) throw new Error(`no comment of the form: ${line}`);
      if (word === "HELP") help = rest;
      if (word !== "TYPE") continue;
      if (!/^(counter|gauge|histogram)$/.test(rest)) throw new Error(`no type: ${line}`);
      if (metrics.has(about)) throw new Error(`${about} is there twice`);
      current = about;
      metrics.set(about, { type: rest as ParsedMetric["type"], help, samples: [] });
      continue;
    }
    const [, name = "", labelText = "", value = ""] = SAMPLE.exec(line) ?? [];
    if (name === "") throw new Error(`no value of the form: ${line}`);
    const metric = metrics.get(current);
    const suffixes = metric?.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    if (!metric || !suffixes.some((suffix) => name === current + suffix))
      throw new Error(`${name} does not belong to ${current}`);
    const key = `${name}{${labelText}}`;
    if (seen.has(key)) throw new Error(`${key} is there twice`);
    seen.add(key);
    metric.samples.push({
      name,
      labels: parseLabels(labelText),
      value: Number(value.replace("+Inf", "Infinity")),
    });
  }
  for (const [name, metric] of metrics) if (metric.type === "histogram") requireBuckets(name, metric);
  return metrics;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ""; ) {
    const [whole = "", name = "", value = ""] = LABEL.exec(rest) ?? [];
    if (whole === "" || name in labels) throw new Error(`no labels of the form: ${text}`);
    labels[name] = value;
    rest = rest.slice(whole.length);
  }
  return labels;
}

function requireBuckets(name: string, { samples }: ParsedMetric): void {
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...others } }) => JSON.stringify(others));
  for (const group of groups.values()) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const counts = buckets.map(({ value }) => value);
    const bounds = buckets.map(({ labels }) => Number((labels.le ?? "").replace("+Inf", "Infinity")));
    const rises = (values: readonly number[]) =>
      values.every((value, at) => at === 0 || value >= (values[at - 1] ?? 0));
    const count = group.find((sample) => sample.name === `${name}_count`)?.value;
    if (
      !rises(counts) ||
      !rises(bounds) ||
      bounds.at(-1) !== Number.POSITIVE_INFINITY ||
      counts.at(-1) !== count
    )
      throw new Error(`the buckets of ${name} do not rise to its count`);
  }
}
