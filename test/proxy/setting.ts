import type { Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { credentials } from "@grpc/grpc-js";
import { bearer } from "../e2e/speak/connect.ts";
import { lookup } from "./https-client.ts";
import { HOST, type RunningProxy } from "./proxies.ts";
import type { ProxiedServers } from "./servers.ts";

/** What the tests of a proxy use. */
export interface Setting {
  readonly servers: ProxiedServers;
  readonly proxy: RunningProxy;
}

/** Returns the setting once the tests have begun. */
export type CurrentSetting = () => Setting;

/** Makes a transport through the proxy that sends a token, by default the administrator's. */
type MakeTransport = (setting: Setting, token?: string) => Transport;

const options = ({ proxy, servers }: Setting, token = servers.token) => ({
  baseUrl: `https://${HOST}:${proxy.port}/api`,
  nodeOptions: { ca: proxy.ca, lookup },
  interceptors: [bearer(token)],
});

const connect =
  (httpVersion: "1.1" | "2", useBinaryFormat: boolean): MakeTransport =>
  (setting, token) =>
    createConnectTransport({ ...options(setting, token), httpVersion, useBinaryFormat });

const BY_NAME = {
  "Connect in JSON over HTTP/1.1": connect("1.1", false),
  "Connect in binary over HTTP/1.1": connect("1.1", true),
  "Connect in JSON over HTTP/2": connect("2", false),
  "Connect in binary over HTTP/2": connect("2", true),
  gRPC: (setting, token) => createGrpcTransport(options(setting, token)),
  "gRPC-Web over HTTP/1.1": (setting, token) =>
    createGrpcWebTransport({ ...options(setting, token), httpVersion: "1.1" }),
} satisfies Record<string, MakeTransport>;

export type TransportName = keyof typeof BY_NAME;

/** Generated clients over every protocol, by its name. */
export const TRANSPORTS: Readonly<Record<TransportName, MakeTransport>> = BY_NAME;

export const ALL_TRANSPORTS = Object.entries(TRANSPORTS);

/** Returns the channel of grpc-js to the proxy, under the host of its certificate. */
export function channelOf({ proxy }: Setting) {
  const names = { "grpc.ssl_target_name_override": HOST, "grpc.default_authority": HOST };
  return [credentials.createSsl(Buffer.from(proxy.ca)), names] as const;
}
