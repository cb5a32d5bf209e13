import { baseUrl, integer, listenAddress, oneOf, share } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The default address of the metrics endpoint. */
export const METRICS_ADDRESS = "127.0.0.1:9464";

/** The settings of metrics and traces. */
export const TELEMETRY_SETTINGS = {
  metricsAddress: setting({
    flag: "--metrics-address",
    argument: "address",
    env: "CHARTROOM_METRICS_ADDRESS",
    default: METRICS_ADDRESS,
    help: "address and port at which /metrics is served, without a token; none for off",
    read: listenAddress,
  }),
  otlpEndpoint: setting({
    flag: "--otlp-endpoint",
    argument: "url",
    env: "CHARTROOM_OTLP_ENDPOINT",
    default: "",
    help: "URL of a collector that gets the metrics by OTLP over HTTP, such as http://127.0.0.1:4318; none by default",
    read: baseUrl,
  }),
  otlpTracesEndpoint: setting({
    flag: "--otlp-traces-endpoint",
    argument: "url",
    env: "CHARTROOM_OTLP_TRACES_ENDPOINT",
    default: "",
    help: "URL of a collector that gets traces of calls, executions and agents by OTLP over HTTP, such as http://127.0.0.1:4318; none by default",
    read: baseUrl,
  }),
  otlpHeadersFile: setting({
    flag: "--otlp-headers-file",
    argument: "file",
    env: "CHARTROOM_OTLP_HEADERS_FILE",
    default: "",
    help: "file with headers for collectors of metrics, traces and the audit trail, a line each: name: value; OTEL_EXPORTER_OTLP_HEADERS names others",
    read: (text: string) => text,
  }),
  traceRatio: setting({
    flag: "--trace-ratio",
    argument: "share",
    env: "CHARTROOM_TRACE_RATIO",
    default: "1",
    help: "share of the traces that begin at this server and are sent, from 0 to 1; those that a caller has begun are sent if the caller says so",
    read: share,
  }),
} as const;

export const logLevel = setting({
  flag: "--log-level",
  argument: "level",
  env: "CHARTROOM_LOG_LEVEL",
  default: "info",
  help: "debug, info, warn, error or silent; the log goes to standard error",
  read: oneOf(["debug", "info", "warn", "error", "silent"]),
});

/** The settings of the server's log. */
export const LOG_SETTINGS = {
  logLevel,
  logFile: setting({
    flag: "--log-file",
    argument: "file",
    env: "CHARTROOM_LOG_FILE",
    default: "",
    help: "file that the log goes to instead of standard error; SIGHUP opens it again",
    read: (text: string) => text,
  }),
  logFileSize: setting({
    flag: "--log-file-size",
    argument: "MiB",
    env: "CHARTROOM_LOG_FILE_SIZE",
    default: "64",
    help: "a log file of this size becomes FILE.1 and another is begun",
    read: integer(1, 1_048_576),
  }),
  logFiles: setting({
    flag: "--log-files",
    argument: "number",
    env: "CHARTROOM_LOG_FILES",
    default: "5",
    help: "log files that are kept, the present one among them; of more the oldest is removed",
    read: integer(1, 1_000),
  }),
} as const;
