import { baseUrl, listenAddress } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The address of the metrics of a server that names none. */
export const METRICS_ADDRESS = "127.0.0.1:9464";

/** The settings of metrics. */
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
} as const;
