/** The port of 127.0.0.1 at which isolated work reaches the runner's proxy, in a network of its own. */
export const PROXY_PORT = 3128;

/** The way out of the isolated commands of a piece of work, which have no other. */
export interface WorkNetwork {
  /** The socket of the runner's proxy, which must be reached by nothing but a forwarder in the work's network. */
  readonly socketFile: string;
  /** The service, where its own address is one of the loopback: it must be reached at that address. */
  readonly loopbackService: { readonly host: string; readonly port: number } | undefined;
  /** The file of the runner with the certificates that the work is to trust; undefined for those of the machine. */
  readonly authoritiesFile?: string | undefined;
  /** Aborted when the work is over. */
  readonly ended: AbortSignal;
  /** Returns lines for people about what was refused and not reported before. */
  takeRefusals(): readonly string[];
}

/** Variables by which programs find the authorities that they trust, instead of or in addition to those of the machine. */
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
 * Returns the variables by which programs find the proxy, and the authorities that they trust. What is on the loopback is
 * in the work's own network.
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
    // Node's own client looks at the others only then.
    NODE_USE_ENV_PROXY: "1",
    ...(authoritiesFile && Object.fromEntries(AUTHORITIES_VARIABLES.map((name) => [name, authoritiesFile]))),
  };
}
