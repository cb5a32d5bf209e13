import { startCaddy } from "./proxies.ts";
import { ALL_TRANSPORTS, type TransportName } from "./setting.ts";
import { describeProxy } from "./suite.ts";

describeProxy(
  "caddy",
  startCaddy,
  ALL_TRANSPORTS.map(([name]) => name as TransportName),
);
