import { baseUrl, listenAddress, share } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The address of the metrics of a server that names none. */
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
  traceRatio: setting({
    flag: "--trace-ratio",
    argument: "share",
    env: "CHARTROOM_TRACE_RATIO",
    default: "1",
    help: "share of the traces that begin at this server and are sent, from 0 to 1; those that a caller has begun are sent if the caller says so",
    read: share,
  }),
} as const;
