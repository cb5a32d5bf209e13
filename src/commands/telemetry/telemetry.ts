import { readdir } from "node:fs/promises";
import packageJson from "../../../package.json" with { type: "json" };
import { type Config, ConfigError } from "../../config/config.ts";
import type { OtlpHeaders } from "../../config/otlp-headers.ts";
import { METRICS_ADDRESS } from "../../config/telemetry-settings.ts";
import type { Log } from "../../log.ts";
import { backupMetrics } from "../../metrics/backup-metrics.ts";
import type { MetricSource } from "../../metrics/metric.ts";
import { ProcessMeasures } from "../../metrics/process-metrics.ts";
import type { SpanMeasures } from "../../metrics/span-measures.ts";
import type { Telemetry } from "../../metrics/telemetry.ts";
import { idMaker } from "../../new-id.ts";
import type { Store } from "../../store/store.ts";
import type { Tracing } from "../../tracing/tracing.ts";
import type { Terminal } from "../definitions/command-line.ts";

const TELL_EVERY_MS = 60_000;

/** Returns the figures for administrators about the process and the copies in `--backup-folder`. */
export function healthFigures(
  { backupFolder }: Config,
  terminal: Terminal,
): { readonly sources: readonly MetricSource[]; close(): void } {
  // A separate instance, because each reading of the event loop's figures resets them: a scrape reads another one.
  const own = new ProcessMeasures(terminal.figures);
  return { sources: [own.metrics, ...copyMetrics(backupFolder)], close: () => own.close() };
}

const copyMetrics = (folder: string): MetricSource[] =>
  folder ? [backupMetrics(() => readdir(folder), Date.now)] : [];

/**
 * Serves and exports the metrics according to the settings; undefined when they enable neither.
 * @throws ConfigError when the address was set explicitly and is unusable
 */
export async function serveTelemetry(
  { metricsAddress: address, otlpEndpoint, backupFolder }: Config,
  served: readonly MetricSource[],
  {
    log,
    terminal,
    otlpHeaders,
  }: { readonly log: Log; readonly terminal: Terminal; readonly otlpHeaders: OtlpHeaders },
): Promise<Telemetry | undefined> {
  if (!address && otlpEndpoint === "") return undefined;
  const { startTelemetry } = await import("../../metrics/telemetry.ts");
  const figures = new ProcessMeasures(terminal.figures);
  const sources = [...served, figures.metrics, ...copyMetrics(backupFolder)];
  const onFailure = (err: unknown) => log.warn({ err }, "metrics could not be collected or exported");
  const metrics = { sources, version: packageJson.version, startedAt: Date.now(), onFailure };
  const start = (at: typeof address) =>
    startTelemetry(metrics, { address: at, otlpEndpoint: otlpEndpoint || undefined, otlpHeaders });
  const problemOf = (error: NodeJS.ErrnoException) =>
    `--metrics-address ${address?.host}:${address?.port} cannot be used (${error.code}): choose another, or none`;
  try {
    const telemetry = await start(address);
    if (telemetry.url) log.info({ url: telemetry.url }, "serving metrics");
    return telemetry;
  } catch (error) {
    const isChosen = `${address?.host}:${address?.port}` !== METRICS_ADDRESS;
    if (isChosen) throw new ConfigError([problemOf(error as NodeJS.ErrnoException)]);
    // If several servers run on one machine, the first one has the default address.
    log.warn({}, problemOf(error as NodeJS.ErrnoException));
    return start(undefined);
  }
}

/** Sends traces if the settings name a collector; undefined otherwise. */
export async function traceCalls(
  { otlpTracesEndpoint: endpoint, traceRatio: ratio }: Config,
  store: Store,
  {
    log,
    spans: measures,
    otlpHeaders: headers,
  }: { readonly log: Log; readonly spans: SpanMeasures; readonly otlpHeaders: OtlpHeaders },
): Promise<Tracing | undefined> {
  if (endpoint === "") return undefined;
  // Loaded on demand, together with its packages.
  const { startTracing } = await import("../../tracing/tracing.ts");
  // Every export fails when the collector is unavailable.
  const onFailure = atMostOnceAMinute((err) =>
    log.warn({ err }, "spans of traces were not sent; chartroom_spans_dropped_total counts them"),
  );
  const { version } = packageJson;
  const { now } = Date;
  const newId = idMaker(now);
  return startTracing({ endpoint, headers, ratio, version, store, measures, now, newId, onFailure });
}

/** Returns a function that reports a failure at most once a minute. */
export function atMostOnceAMinute(tell: (error: unknown) => void): (error: unknown) => void {
  let calledAt = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (performance.now() - calledAt < TELL_EVERY_MS) return;
    calledAt = performance.now();
    tell(error);
  };
}
