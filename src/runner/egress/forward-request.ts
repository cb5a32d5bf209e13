import type { EventEmitter } from "node:events";
import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { isIP, type LookupFunction, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { DecideEgress, EgressRefusal, EgressTarget } from "./egress-rules.ts";

/** A connection of the work that is over or was refused. */
export interface EgressConnection extends EgressTarget {
  /** The part of the policy that allows the name; empty if none does. */
  readonly rule: string;
  readonly refusal: EgressRefusal | undefined;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** The context that all requests of a piece of work share. */
export interface EgressPassage {
  readonly decide: DecideEgress;
  readonly onConnection: (connection: EgressConnection) => void;
  /** The open connections to hosts. */
  readonly hosts: Set<EventEmitter & { destroy(): unknown }>;
}

/** Maximum number of concurrent connections from a piece of work, and to hosts. Further ones are refused. */
export const MAX_CONNECTIONS = 1_000;
export const TOO_MANY = `the work has ${MAX_CONNECTIONS} connections to hosts already`;
/** Maximum number of unanswered requests on a connection. A connection with more is closed. */
const MAX_PIPELINED = 100;
/** Time in which a host must accept a connection. */
export const CONNECT_MS = 30_000;

export const STATUS: Readonly<Record<EgressRefusal, readonly [code: number, text: string]>> = {
  not_allowed: [403, "the organization's policy `egress` does not allow it"],
  address_not_public: [403, "its address is not public, and the runner's operator does not name it"],
  no_address: [502, "it has no address"],
  begun_by_fork: [
    403,
    "a pull request from a fork began the work, or may have, and it reaches the hosts of its repositories alone",
  ],
};

/** Returns a text for people that says why a target was refused. */
export function describeRefusal({ host, port }: EgressTarget, refusal: EgressRefusal): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port} is not reached: ${STATUS[refusal][1]}`;
}

/** Returns the reason of a failure. The error for several failed addresses has no message. */
export function reasonOf(error: NodeJS.ErrnoException): string {
  return error.message || error.code || "none of its addresses answers";
}

export function bytesOf(host: Socket | undefined) {
  return { sentBytes: host?.bytesWritten ?? 0, receivedBytes: host?.bytesRead ?? 0 };
}

/** Returns the options to connect to a target at addresses that were checked, without another look-up. */
export function dialing({ host, port }: EgressTarget, addresses: readonly string[]) {
  const lookup: LookupFunction = (_name, options, callback) => {
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first = { address: "", family: 0 }] = found;
    if (options.all) callback(null, found);
    else callback(null, first.address, first.family);
  };
  return { host, port, lookup, autoSelectFamily: true };
}

/** Hop-by-hop headers (RFC 9110, 7.6.1), in addition to those that Connection names. */
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
 * Returns the headers to forward, as alternating names and values.
 * @param others names, in lower case, of further headers that are removed
 */
export function endToEnd(rawHeaders: readonly string[], ...others: readonly string[]): string[] {
  const pairs = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ""] as const] : [],
  );
  const named = pairs.flatMap(([name, value]) =>
    name.toLowerCase() === "connection" ? value.toLowerCase().split(/\s*,\s*/) : [],
  );
  const left = new Set([...HOP_BY_HOP, ...named]);
  // Keep it even if Connection names it: it says where the forwarded body ends.
  left.delete("content-length");
  for (const each of others) left.add(each);
  return pairs.filter(([name]) => !left.has(name.toLowerCase())).flat();
}

/** Returns the header that makes the forwarded request chunked if the received one is. */
export function framing({ headers }: IncomingMessage): string[] {
  return headers["transfer-encoding"] === undefined ? [] : ["Transfer-Encoding", "chunked"];
}

/** A host's answer in the form that the work receives. */
export interface PassedAnswer {
  readonly statusMessage: string | undefined;
  /** Alternating names and values. */
  readonly headers: string[];
  /** A stream that transforms the body; absent when the body is forwarded unchanged. */
  readonly body?: Duplex;
}

/** A request to forward. */
export interface PassedRequest {
  readonly target: EgressTarget;
  /** Opens the request to the host. */
  readonly open: (options: RequestOptions) => ClientRequest;
  /** Returns the answer for the work, or a text for people that says why it gets none. */
  readonly toAnswer: (received: IncomingMessage) => PassedAnswer | string;
}

/** Answers a request of the work with a text for people. */
export function rejectRequest(res: ServerResponse, code: number, text: string): void {
  if (res.headersSent) return void res.destroy();
  res.writeHead(code, STATUS_CODES[code], {
    "Content-Type": "text/plain; charset=utf-8",
    Connection: "close",
  });
  res.end(`${text}\n`);
}

/** Forwards a request to its host if that is allowed, and sends back the answer. */
export async function forwardRequest(
  req: IncomingMessage,
  res: ServerResponse,
  { target, open, toAnswer }: PassedRequest,
  { decide, onConnection, hosts }: EgressPassage,
): Promise<void> {
  const refuse = (code: number, text: string) => rejectRequest(res, code, text);
  const decision = await decide(target);
  const { rule, refusal } = decision;
  if (refusal !== undefined) {
    onConnection({ ...target, rule, refusal, sentBytes: 0, receivedBytes: 0 });
    return refuse(STATUS[refusal][0], describeRefusal(target, refusal));
  }
  // The client has gone, so nothing would close a connection that is opened now.
  if (req.socket.destroyed) return;
  if (hosts.size >= MAX_CONNECTIONS) return refuse(503, TOO_MANY);
  const sent = open({
    ...dialing(target, decision.addresses),
    agent: false,
    method: req.method,
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
    const answer = toAnswer(received);
    const giveUp = (why: string) => {
      refuse(502, why);
      sent.destroy();
    };
    if (typeof answer === "string") return giveUp(answer);
    try {
      res.writeHead(received.statusCode ?? 502, answer.statusMessage, answer.headers);
    } catch {
      // Node parses some status lines that it refuses to write.
      return giveUp("the host's answer is not HTTP");
    }
    (answer.body ? received.pipe(answer.body) : received).pipe(res);
  });
  sent.once("close", () => {
    hosts.delete(sent);
    onConnection({ ...target, rule, refusal, ...bytesOf(host) });
    // For example when the host switches protocols without being asked.
    if (!res.headersSent) refuse(502, "the host has ended the connection without an answer");
  });
  res.once("close", () => sent.destroy());
  req.pipe(sent);
}

/**
 * Returns a request listener that handles the requests of a connection one at a time. Answers are sent in the order of
 * the requests, and no request is forwarded before its turn.
 */
export function oneAtATime(handle: (req: IncomingMessage, res: ServerResponse) => Promise<void>) {
  const turns = new WeakMap<Socket, { waiting: number; last: Promise<unknown> }>();
  return (req: IncomingMessage, res: ServerResponse) => {
    const turn = turns.get(req.socket) ?? { waiting: 0, last: Promise.resolve() };
    turns.set(req.socket, turn);
    turn.waiting++;
    res.on("error", () => undefined);
    if (turn.waiting > MAX_PIPELINED) return void req.socket.destroy();
    const closed = new Promise<void>((resolve) => res.once("close", resolve));
    turn.last = turn.last.then(async () => {
      await handle(req, res).catch(() => req.socket.destroy());
      await closed;
      turn.waiting--;
    });
  };
}
