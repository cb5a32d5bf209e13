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
    help: "address and port of /metrics, which needs no token; none for off",
    read: listenAddress,
  }),
  otlpEndpoint: setting({
    flag: "--otlp-endpoint",
    argument: "url",
    env: "CHARTROOM_OTLP_ENDPOINT",
    default: "",
    help: "URL of an OTLP/HTTP collector for metrics, such as http://127.0.0.1:4318; none by default",
    read: baseUrl,
  }),
  otlpTracesEndpoint: setting({
    flag: "--otlp-traces-endpoint",
    argument: "url",
    env: "CHARTROOM_OTLP_TRACES_ENDPOINT",
    default: "",
    help: "URL of an OTLP/HTTP collector for traces of calls, executions and agents, such as http://127.0.0.1:4318; none by default",
    read: baseUrl,
  }),
  otlpHeadersFile: setting({
    flag: "--otlp-headers-file",
    argument: "file",
    env: "CHARTROOM_OTLP_HEADERS_FILE",
    default: "",
    help: "file with headers for the OTLP collectors, one per line as name: value; OTEL_EXPORTER_OTLP_HEADERS adds others",
    read: (text: string) => text,
  }),
  traceRatio: setting({
    flag: "--trace-ratio",
    argument: "share",
    env: "CHARTROOM_TRACE_RATIO",
    default: "1",
    help: "share of the traces started by this server to send, from 0 to 1; traces started by a caller are sent if the caller sampled them",
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
    help: "file to write the log to instead of standard error; SIGHUP reopens it",
    read: (text: string) => text,
  }),
  logFileSize: setting({
    flag: "--log-file-size",
    argument: "MiB",
    env: "CHARTROOM_LOG_FILE_SIZE",
    default: "64",
    help: "size at which the log file is rotated to FILE.1",
    read: integer(1, 1_048_576),
  }),
  logFiles: setting({
    flag: "--log-files",
    argument: "number",
    env: "CHARTROOM_LOG_FILES",
    default: "5",
    help: "number of log files to keep, including the current one",
    read: integer(1, 1_000),
  }),
} as const;
