import type { EventEmitter } from "node:events";
import {
  createServer,
  type IncomingMessage,
  request as openRequest,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import type { DecideEgress, EgressRefusal, EgressTarget } from "./egress-rules.ts";
import { parseHost, targetOfUrl } from "./egress-rules.ts";
import { joinSockets } from "./forwarder.ts";

/** A connection that work asked for, once it is over or refused. */
export interface EgressConnection extends EgressTarget {
  /** The part of the policy that allows the name; empty where none does. */
  readonly rule: string;
  readonly refusal: EgressRefusal | undefined;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

export interface EgressProxyOptions {
  readonly decide: DecideEgress;
  readonly onConnection: (connection: EgressConnection) => void;
  /** Holds the connections to hosts that are not over. */
  readonly hosts?: Set<EventEmitter & { destroy(): unknown }>;
}

/** Connections of one piece of work at the same time, from it and to hosts; more are refused until others end. */
const MAX_CONNECTIONS = 1_000;
/** Requests of one connection that are not answered yet; one that sends more is ended. */
const MAX_PIPELINED = 100;
/** Time in which a host must take a connection. */
const CONNECT_MS = 30_000;

const STATUS: Readonly<Record<EgressRefusal, readonly [code: number, text: string]>> = {
  not_allowed: [403, "the organization's policy `egress` does not allow it"],
  address_not_public: [403, "its address is not public, and the runner's operator does not name it"],
  no_address: [502, "it has no address"],
  begun_by_fork: [
    403,
    "a pull request from a fork began the work, or may have, and it reaches the hosts of its repositories alone",
  ],
};

/** Returns for people why a target was refused. */
export function describeRefusal({ host, port }: EgressTarget, refusal: EgressRefusal): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port} is not reached: ${STATUS[refusal][1]}`;
}

/** Headers between a client and its proxy alone (RFC 9110, 7.6.1), beside those that Connection names. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Returns a proxy that speaks CONNECT and plain HTTP. Each request is decided by itself; the proxy connects to the
 * addresses of the decision, follows no redirect, and reads nothing of what goes through a tunnel.
 */
export function createEgressProxy(options: EgressProxyOptions): Server {
  const passing: Passing = { hosts: new Set(), ...options };
  const turns = new WeakMap<Socket, Turns>();
  // A transfer may take as long as it takes.
  const server = createServer({ requestTimeout: 0 }, (req, res) => {
    const turn = turns.get(req.socket) ?? { waiting: 0, last: Promise.resolve() };
    turns.set(req.socket, turn);
    turn.waiting++;
    if (turn.waiting > MAX_PIPELINED) return void req.socket.destroy();
    const closed = new Promise<void>((resolve) => res.once("close", resolve));
    // Answers go back in the order of requests: no host is asked before its turn.
    turn.last = turn.last.then(async () => {
      await forward(req, res, passing).catch(() => req.socket.destroy());
      await closed;
      turn.waiting--;
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on("connect", (req: IncomingMessage, client: Socket, head: Buffer) => {
    client.on("error", () => client.destroy());
    tunnel(req, client, head, passing).catch(() => client.destroy());
  });
  // One that takes nothing more, or says nothing more, would stay.
  server.once("close", () => {
    for (const host of passing.hosts) host.destroy();
  });
  return server;
}

/** The requests of a connection, which are passed on one after another. */
interface Turns {
  waiting: number;
  last: Promise<unknown>;
}

type Passing = Required<EgressProxyOptions>;

const TOO_MANY = `the work has ${MAX_CONNECTIONS} connections to hosts already`;

async function tunnel(
  req: IncomingMessage,
  client: Socket,
  head: Buffer,
  { decide, onConnection, hosts }: Passing,
): Promise<void> {
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
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
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

/** Returns what went wrong; the failure of several addresses together has no message. */
function reasonOf(error: NodeJS.ErrnoException): string {
  return error.message || error.code || "none of its addresses answers";
}

function bytesOf(host: Socket | undefined) {
  return { sentBytes: host?.bytesWritten ?? 0, receivedBytes: host?.bytesRead ?? 0 };
}

/** Returns how a target is connected to: at addresses that were checked, without another look-up. */
function dialing({ host, port }: EgressTarget, addresses: readonly string[]) {
  const lookup: LookupFunction = (_name, options, callback) => {
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first = { address: "", family: 0 }] = found;
    if (options.all) callback(null, found);
    else callback(null, first.address, first.family);
  };
  return { host, port, lookup, autoSelectFamily: true };
}

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

async function forward(
  req: IncomingMessage,
  res: ServerResponse,
  { decide, onConnection, hosts }: Passing,
): Promise<void> {
  const refuse = (code: number, text: string) => {
    if (res.headersSent) return void res.destroy();
    res.writeHead(code, STATUS_CODES[code], {
      "Content-Type": "text/plain; charset=utf-8",
      Connection: "close",
    });
    res.end(`${text}\n`);
  };
  res.on("error", () => undefined);
  const url = /^http:\/\//i.test(req.url ?? "") ? URL.parse(req.url ?? "") : null;
  const target = url && targetOfUrl(url.href);
  if (!url || !target) return refuse(400, "this is a proxy: it takes http addresses, and CONNECT for others");
  const decision = await decide(target);
  const { rule, refusal } = decision;
  if (refusal !== undefined) {
    onConnection({ ...target, rule, refusal, sentBytes: 0, receivedBytes: 0 });
    return refuse(STATUS[refusal][0], describeRefusal(target, refusal));
  }
  // The client has gone: what is opened now, nothing would close.
  if (req.socket.destroyed) return;
  if (hosts.size >= MAX_CONNECTIONS) return refuse(503, TOO_MANY);
  const sent = openRequest({
    ...dialing(target, decision.addresses),
    agent: false,
    method: req.method,
    path: url.pathname + url.search,
    // The host of the address counts, whatever the header says.
    headers: [...endToEnd(req.rawHeaders, "host"), "Host", url.host, ...framing(req)],
    timeout: CONNECT_MS,
  });
  hosts.add(sent);
  let host: Socket | undefined;
  sent.once("socket", (socket) => {
    host = socket;
    socket.once("connect", () => sent.setTimeout(0));
  });
  sent.once("timeout", () => sent.destroy(new Error("it does not answer")));
  sent.on("error", (error) => refuse(502, `the host is not reached: ${reasonOf(error)}`));
  sent.once("response", (received) => {
    received.once("error", () => res.destroy());
    try {
      res.writeHead(received.statusCode ?? 502, received.statusMessage, endToEnd(received.rawHeaders));
    } catch {
      // Node reads status lines that it does not write.
      refuse(502, "the host's answer is not HTTP");
      return void sent.destroy();
    }
    received.pipe(res);
  });
  sent.once("close", () => {
    hosts.delete(sent);
    onConnection({ ...target, rule, refusal, ...bytesOf(host) });
    // As when it switches to a protocol that nobody asked for.
    if (!res.headersSent) refuse(502, "the host has ended the connection without an answer");
  });
  res.once("close", () => sent.destroy());
  req.pipe(sent);
}

/** Returns the header by which the next connection has the body of a request in pieces, as this one has. */
function framing({ headers }: IncomingMessage): string[] {
  return headers["transfer-encoding"] === undefined ? [] : ["Transfer-Encoding", "chunked"];
}

/** Returns the headers that are passed on, as names and values in turn. */
function endToEnd(rawHeaders: readonly string[], ...others: readonly string[]): string[] {
  const pairs = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ""] as const] : [],
  );
  const named = pairs.flatMap(([name, value]) =>
    name.toLowerCase() === "connection" ? value.toLowerCase().split(/\s*,\s*/) : [],
  );
  const left = new Set([...HOP_BY_HOP, ...named, ...others]);
  // It says where the body ends, which is passed on.
  left.delete("content-length");
  return pairs.filter(([name]) => !left.has(name.toLowerCase())).flat();
}
