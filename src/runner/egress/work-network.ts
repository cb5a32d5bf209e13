/** The port on 127.0.0.1, in the work's own network, where isolated work reaches the runner's proxy. */
export const PROXY_PORT = 3128;

/** The only network access of a piece of work's isolated commands. */
export interface WorkNetwork {
  /** The socket of the runner's proxy. Only a forwarder in the work's network may reach it. */
  readonly socketFile: string;
  /** The service, if its address is a loopback address. The work must reach it at that address. */
  readonly loopbackService: { readonly host: string; readonly port: number } | undefined;
  /** The file with the certificates that the work trusts; undefined if it trusts those of the machine. */
  readonly authoritiesFile?: string | undefined;
  /** Aborted when the work is over. */
  readonly ended: AbortSignal;
  /** Returns lines for people about refusals that were not returned before. */
  takeRefusals(): readonly string[];
}

/** Variables with the certificates that programs trust, instead of or in addition to those of the machine. */
const AUTHORITIES_VARIABLES = [
  "AWS_CA_BUNDLE",
  "CARGO_HTTP_CAINFO",
  "CURL_CA_BUNDLE",
  "DENO_CERT",
  "GIT_SSL_CAINFO",
  "NODE_EXTRA_CA_CERTS",
  "PIP_CERT",
  "REQUESTS_CA_BUNDLE",
  "SSL_CERT_FILE",
];

/**
 * Returns the variables that direct programs to the proxy and to the certificates that they trust. Loopback addresses
 * bypass the proxy, since they belong to the work's own network.
 */
export function proxyVariables({
  authoritiesFile,
}: Pick<WorkNetwork, "authoritiesFile">): Record<string, string> {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const direct = "localhost,127.0.0.1,::1";
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    NO_PROXY: direct,
    http_proxy: proxy,
    https_proxy: proxy,
    no_proxy: direct,
    // Node's own client ignores the other variables without this one.
    NODE_USE_ENV_PROXY: "1",
    ...(authoritiesFile && Object.fromEntries(AUTHORITIES_VARIABLES.map((name) => [name, authoritiesFile]))),
  };
}
