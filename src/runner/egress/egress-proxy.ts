import {
  createServer,
  type IncomingMessage,
  request as openRequest,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect, type Socket } from "node:net";
import type { CredentialProxy } from "./credential-proxy.ts";
import { parseHost, targetOfUrl } from "./egress-rules.ts";
import {
  bytesOf,
  CONNECT_MS,
  describeRefusal,
  dialing,
  type EgressPassage,
  endToEnd,
  forwardRequest,
  framing,
  MAX_CONNECTIONS,
  oneAtATime,
  reasonOf,
  rejectRequest,
  STATUS,
  TOO_MANY,
} from "./forward-request.ts";
import { joinSockets } from "./forwarder.ts";

export interface EgressProxyOptions
  extends Omit<EgressPassage, "hosts">,
    Partial<Pick<EgressPassage, "hosts">> {
  /** Injects secrets into requests to their hosts; none when absent. */
  readonly credentials?: CredentialProxy | undefined;
}

/**
 * Creates a proxy that speaks CONNECT and plain HTTP. It decides each request separately, connects only to the addresses
 * of the decision and follows no redirects. It reads the content of a tunnel only if the host gets secrets.
 */
export function createEgressProxy(options: EgressProxyOptions): Server {
  const passing: Passing = { hosts: new Set(), ...options };
  // No timeout: a transfer may take any amount of time.
  const server = createServer(
    { requestTimeout: 0 },
    oneAtATime((req, res) => forward(req, res, passing)),
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.on("connect", (req: IncomingMessage, client: Socket, head: Buffer) => {
    client.on("error", () => client.destroy());
    tunnel(req, client, head, passing).catch(() => client.destroy());
  });
  // A connection to a stalled host would otherwise stay open.
  server.once("close", () => {
    for (const host of passing.hosts) host.destroy();
  });
  return server;
}

type Passing = EgressPassage & Pick<EgressProxyOptions, "credentials">;

async function tunnel(
  req: IncomingMessage,
  client: Socket,
  head: Buffer,
  { credentials, ...passage }: Passing,
): Promise<void> {
  const { decide, onConnection, hosts } = passage;
  const { host: name, port } = parseHost(req.url ?? "") ?? {};
  if (name === undefined || port === undefined)
    return answer(client, 400, "CONNECT needs a host and its port");
  const target = { host: name, port };
  const decision = await decide(target);
  const { rule, refusal } = decision;
  if (refusal !== undefined) {
    onConnection({ ...target, rule, refusal, sentBytes: 0, receivedBytes: 0 });
    return answer(client, STATUS[refusal][0], describeRefusal(target, refusal));
  }
  if (client.destroyed) return;
  if (credentials?.takes(target)) {
    if (head.length > 0) client.unshift(head);
    client.write(ESTABLISHED, () => credentials.serve(client, target, passage));
    return;
  }
  if (hosts.size >= MAX_CONNECTIONS) return answer(client, 503, TOO_MANY);
  const host = connect({ ...dialing(target, decision.addresses), allowHalfOpen: true });
  hosts.add(host);
  const onClientGone = () => host.destroy();
  const onUnreachable = (error: Error) => answer(client, 502, `the host is not reached: ${reasonOf(error)}`);
  client.once("close", onClientGone);
  host.once("error", onUnreachable);
  host.setTimeout(CONNECT_MS, () => host.destroy(new Error("it does not answer")));
  host.once("connect", () => {
    host.setTimeout(0);
    client.write(ESTABLISHED);
    if (head.length > 0) host.write(head);
    joinSockets(client, host);
    client.off("close", onClientGone);
    host.off("error", onUnreachable);
  });
  host.once("close", () => {
    hosts.delete(host);
    onConnection({ ...target, rule, refusal, ...bytesOf(host) });
  });
}

const ESTABLISHED = "HTTP/1.1 200 Connection established\r\n\r\n";

function answer(client: Socket, code: number, text: string): void {
  if (client.destroyed) return;
  const body = `${text}\n`;
  const head = [
    `HTTP/1.1 ${code} ${code === 403 ? "Forbidden" : "Refused"}`,
    "Content-Type: text/plain; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  client.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/** Forwards a plain HTTP request, without secrets. */
async function forward(req: IncomingMessage, res: ServerResponse, passage: EgressPassage): Promise<void> {
  const url = /^http:\/\//i.test(req.url ?? "") ? URL.parse(req.url ?? "") : null;
  const target = url && targetOfUrl(url.href);
  if (!url || !target)
    return rejectRequest(res, 400, "this is a proxy: it takes http addresses, and CONNECT for others");
  const request = {
    path: url.pathname + url.search,
    // The host of the URL decides, not the Host header.
    headers: [...endToEnd(req.rawHeaders, "host"), "Host", url.host, ...framing(req)],
  };
  return forwardRequest(
    req,
    res,
    {
      target,
      open: (options) => openRequest({ ...options, ...request }),
      toAnswer: ({ statusMessage, rawHeaders }) => ({ statusMessage, headers: endToEnd(rawHeaders) }),
    },
    passage,
  );
}
