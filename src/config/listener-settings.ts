import { baseUrl, integer, nonEmpty, origins } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The settings of the address on which the server listens, the URL for clients, and TLS. */
export const LISTENER_SETTINGS = {
  host: setting({
    flag: "--host",
    argument: "address",
    env: "CHARTROOM_HOST",
    default: "127.0.0.1",
    help: "address to listen on; 0.0.0.0 or :: for all interfaces",
    read: nonEmpty,
  }),
  port: setting({
    flag: "--port",
    argument: "number",
    env: "CHARTROOM_PORT",
    default: "8080",
    help: "port to listen on; 0 picks a free one",
    read: integer(0, 65_535),
  }),
  baseUrl: setting({
    flag: "--base-url",
    argument: "url",
    env: "CHARTROOM_BASE_URL",
    default: "",
    help: "URL at which clients reach the server; by default, built from host and port",
    read: baseUrl,
  }),
  tlsCert: setting({
    flag: "--tls-cert",
    argument: "file",
    env: "CHARTROOM_TLS_CERT",
    default: "",
    help: "PEM file of the certificate chain; with --tls-key, it enables TLS; both files are reloaded when they change",
    read: (text: string) => text,
  }),
  tlsKey: setting({
    flag: "--tls-key",
    argument: "file",
    env: "CHARTROOM_TLS_KEY",
    default: "",
    help: "PEM file of the certificate's private key",
    read: (text: string) => text,
  }),
  corsOrigins: setting({
    flag: "--cors-origins",
    argument: "origins",
    env: "CHARTROOM_CORS_ORIGINS",
    default: "",
    help: "comma-separated origins whose pages may call the server; none by default",
    read: origins,
  }),
} as const;

/** The settings of external sign-in providers for people and token issuers for machines. */
export const SIGN_IN_SETTINGS = {
  signInProviders: setting({
    flag: "--sign-in-providers",
    argument: "file",
    env: "CHARTROOM_SIGN_IN_PROVIDERS",
    default: "",
    help: "JSON file of OpenID Connect providers for sign-in (docs/sign-in.md); none by default",
    read: (text: string) => text,
  }),
  machineIssuers: setting({
    flag: "--machine-issuers",
    argument: "file",
    env: "CHARTROOM_MACHINE_ISSUERS",
    default: "",
    help: "JSON file of token issuers that service accounts may trust, such as CI systems (docs/sign-in.md); none by default",
    read: (text: string) => text,
  }),
} as const;
