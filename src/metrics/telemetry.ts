import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ExportedMetrics } from "./exporters.ts";

/** The destinations of metrics. */
export interface TelemetryTargets {
  /** The address that serves them in Prometheus's text format. */
  readonly address?: { readonly host: string; readonly port: number } | undefined;
  /** The URL of a collector that accepts OTLP over HTTP, without its path; undefined for none. */
  readonly otlpEndpoint?: string | undefined;
  /** Headers for that collector. */
  readonly otlpHeaders?: Readonly<Record<string, string>>;
}

export interface Telemetry {
  /** The URL of the metrics; undefined when they are not served. */
  readonly url: string | undefined;
  close(): Promise<void>;
}

/** Maximum concurrent connections; further ones are closed. */
const MAX_CONNECTIONS = 16;
/** Time that a request may take to arrive. */
const REQUEST_MS = 10_000;

/**
 * Serves the metrics of a process and exports them. The packages for it are loaded on demand: a server serves metrics
 * by default, and many are never scraped.
 *
 * @throws the error of listening on an unusable address
 */
export async function startTelemetry(
  metrics: ExportedMetrics,
  { address, otlpEndpoint, otlpHeaders = {} }: TelemetryTargets,
): Promise<Telemetry> {
  const server = address && (await listen(createScrapeHandler(metrics), address));
  const endExport =
    otlpEndpoint === undefined
      ? undefined
      : await (await import("./exporters.ts")).startExport(metrics, otlpEndpoint, otlpHeaders);
  return {
    url: server && urlOf(server),
    async close() {
      server?.close();
      server?.closeAllConnections();
      await endExport?.().catch(metrics.onFailure);
    },
  };
}

function createScrapeHandler(metrics: ExportedMetrics) {
  let readText: (() => Promise<string>) | undefined;
  const collect = async () => {
    readText ??= (await import("./exporters.ts")).createMetricsText(metrics);
    return readText();
  };
  let collecting: Promise<string> | undefined;
  return async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const [path] = (req.url ?? "").split("?");
    if (path !== "/metrics") return respond(res, 404, "the metrics are at /metrics\n");
    if (req.method !== "GET" && req.method !== "HEAD") return respond(res, 405, "GET /metrics\n");
    // Requests that arrive in the meantime share the result.
    collecting ??= collect().finally(() => {
      collecting = undefined;
    });
    const text = await collecting.catch(metrics.onFailure);
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
