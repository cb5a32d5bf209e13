/** The port of 127.0.0.1 at which isolated work reaches the runner's proxy, in a network of its own. */
export const PROXY_PORT = 3128;

/** The way out of the isolated commands of a piece of work, which have no other. */
export interface WorkNetwork {
  /** The socket of the runner's proxy, which must be reached by nothing but a forwarder in the work's network. */
  readonly socketFile: string;
  /** The service, where its own address is one of the loopback: it must be reached at that address. */
  readonly loopbackService: { readonly host: string; readonly port: number } | undefined;
  /** Aborted when the work is over. */
  readonly ended: AbortSignal;
  /** Returns lines for people about what was refused and not told of before. */
  takeRefusals(): readonly string[];
}

/** Returns the variables by which programs find the proxy. What is on the loopback is in the work's own network. */
export function proxyVariables(): Record<string, string> {
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
  };
}
