import type { Server } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { endConnection, sendGoAway } from "./close-connection.ts";
import type { Connections } from "./connections.ts";
import type { ListenerLimits } from "./listener-limits.ts";

/**
 * Time without requests that the server waits for, once before and once after the
 * port closes: requests in flight when the last response was sent can still arrive.
 */
const QUIET_MS = 75;
/** Time for final messages to be sent at the end; with twice {@link QUIET_MS} less than half a second. */
const FLUSH_MS = 200;
/** The fraction of the time after which no new connections are accepted. */
const ACCEPTING_FRACTION = 3 / 4;
/** Maximum number of event loop turns, in case clients connect faster than they are accepted. */
const MAX_TURNS = 1_000;

export interface Drain {
  /** To be called whenever a request ended. */
  requestEnded(): void;
  /** True if all requests ended in time; connections that are left may be destroyed then. */
  readonly done: Promise<boolean>;
}

/** Waits for the requests in flight and accepts new ones for as long as the time allows. */
export function startDrain(
  server: Server,
  connections: Connections,
  limits: ListenerLimits,
  graceMs: number,
): Drain {
  let onEnded = (): void => {};

  const untilQuiet = async (mostMs: number): Promise<boolean> => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const deadline = setTimeout(resolve, mostMs, false);
    let quiet: NodeJS.Timeout | undefined;
    onEnded = () => {
      clearTimeout(quiet);
      if (connections.active > 0) return;
      quiet = setTimeout(() => {
        if (connections.active === 0) resolve(true);
      }, QUIET_MS);
    };
    onEnded();
    const isQuiet = await promise;
    clearTimeout(deadline);
    clearTimeout(quiet);
    return isQuiet;
  };

  const run = async (): Promise<boolean> => {
    for (const connection of connections) {
      if (connection.isServed && connection.open.size === 0) sendGoAway(connection, limits);
    }
    await untilQuiet(graceMs * ACCEPTING_FRACTION);

    await acceptWaiting(server);
    if (server.listening) server.close();
    for (const connection of connections) sendGoAway(connection, limits);
    if (!(await untilQuiet(graceMs * (1 - ACCEPTING_FRACTION)))) return false;

    for (const connection of connections) endConnection(connection, limits);
    const flushed = Promise.withResolvers<void>();
    const deadline = setTimeout(flushed.resolve, FLUSH_MS);
    connections.whenEmpty(flushed.resolve);
    await flushed.promise;
    clearTimeout(deadline);
    return true;
  };

  return { requestEnded: () => onEnded(), done: run() };
}

/**
 * Accepts the connections that wait in the kernel's backlog, which would be reset
 * when the port closes. Node accepts some in each turn of its event loop.
 */
async function acceptWaiting(server: Server): Promise<void> {
  let isArriving = true;
  const onConnection = (): void => {
    isArriving = true;
  };
  server.on("connection", onConnection);
  for (let turn = 0; isArriving && turn < MAX_TURNS; turn++) {
    isArriving = false;
    await nextTurn();
  }
  server.off("connection", onConnection);
}
