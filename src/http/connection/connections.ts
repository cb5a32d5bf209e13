import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { ListenerLimits } from "./listener-limits.ts";
import { plainAddress } from "./plain-address.ts";

/** One TCP connection, from its acceptance until it is closed. */
export interface Connection {
  /** The accepted socket; replaced by the encrypted one when the handshake is done. */
  socket: Socket;
  /** The address of the peer, as {@link plainAddress} writes it; empty when the peer had already disconnected. */
  readonly peer: string;
  /** Set when the connection speaks HTTP/2. */
  session?: ServerHttp2Session;
  readonly acceptedAt: number;
  /** False during the TLS handshake: nothing can be sent to the client yet. */
  isReadable: boolean;
  /** False until the headers of a first request are complete. */
  isServed: boolean;
  /** Requests whose response has not been fully written. */
  readonly open: Set<OpenRequest>;
  /** The time at which the last of them ended. */
  idleSince: number;
}

/** A request whose response has not been fully written. */
export interface OpenRequest {
  /** Called once when the request has ended. */
  ended(): void;
  /** For HTTP/1: called when the server drains and its connection may no longer persist. */
  updatePersistence?(): void;
  /** For HTTP/1: true if a part of its response has already been sent. */
  readonly isResponding?: boolean;
}

/** All open connections and the requests on them. */
export interface Connections extends Iterable<Connection> {
  /** The number of requests, on all connections, whose response has not been fully written. */
  readonly active: number;
  /** Returns the number of connections from an address. */
  from(peer: string): number;
  /** Starts to track a socket that was just accepted. */
  accept(socket: Socket, isReadable: boolean): Connection;
  /** Counts a request until it is ended or its connection closes. */
  begin(connection: Connection, request: OpenRequest): void;
  /** Ends a request; without effect when it has already ended. */
  end(connection: Connection, request: OpenRequest): void;
  /** Calls back once, when no connection is left. */
  whenEmpty(callback: () => void): void;
  /** Returns the connections that have waited longer than the limits allow, by what they wait for. */
  overdue(): { headers: Connection[]; next: Connection[] };
}

/**
 * Creates the tracker of connections.
 * @param requestEnded called after a request ended, with its connection
 */
export function trackConnections(
  limits: ListenerLimits,
  requestEnded: (connection: Connection) => void,
): Connections {
  const all = new Set<Connection>();
  const byPeer = new Map<string, number>();
  let active = 0;
  const waiting = new Set<() => void>();

  const notifyWaiting = (): void => {
    for (const callback of waiting) callback();
    waiting.clear();
  };

  const isOverdue = (connection: Connection, now: number): boolean => {
    if (connection.open.size > 0) return false;
    // Node itself closes a silent HTTP/1.1 connection, but not one that sends a few bytes from time to time.
    const maxMs = connection.session
      ? limits.idleSessionMs
      : limits.keepAliveTimeoutMs + limits.headersTimeoutMs;
    return now - connection.idleSince >= maxMs;
  };

  const end = (connection: Connection, request: OpenRequest): void => {
    if (!connection.open.delete(request)) return;
    active--;
    request.ended();
    if (connection.open.size === 0) connection.idleSince = limits.now();
    requestEnded(connection);
  };

  return {
    get active() {
      return active;
    },
    [Symbol.iterator]: () => all.values(),
    from: (peer) => byPeer.get(peer) ?? 0,
    accept(socket, isReadable) {
      const now = limits.now();
      const open = new Set<OpenRequest>();
      const peer = plainAddress(socket.remoteAddress ?? "");
      const connection = { socket, peer, isReadable, acceptedAt: now, isServed: false, open, idleSince: now };
      all.add(connection);
      byPeer.set(peer, (byPeer.get(peer) ?? 0) + 1);
      socket.once("close", () => {
        all.delete(connection);
        const left = (byPeer.get(peer) ?? 1) - 1;
        if (left === 0) byPeer.delete(peer);
        else byPeer.set(peer, left);
        // Node notifies only the first of several pipelined responses that the connection is gone.
        for (const request of open) end(connection, request);
        if (all.size === 0) notifyWaiting();
      });
      return connection;
    },
    begin(connection, request) {
      connection.isServed = true;
      active++;
      connection.open.add(request);
    },
    end,
    whenEmpty(callback) {
      waiting.add(callback);
      if (all.size === 0) notifyWaiting();
    },
    overdue() {
      const now = limits.now();
      const headers: Connection[] = [];
      const next: Connection[] = [];
      for (const connection of all) {
        if (!connection.isServed) {
          if (now - connection.acceptedAt >= limits.headersTimeoutMs) headers.push(connection);
        } else if (isOverdue(connection, now)) {
          next.push(connection);
        }
      }
      return { headers, next };
    },
  };
}
