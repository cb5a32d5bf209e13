import type { Server } from "node:net";
import type { Connections } from "./connections.ts";
import { endConnection, sendAway } from "./farewell.ts";
import type { ListenerLimits } from "./listener-limits.ts";

/** Requests that were on their way when the last answer left get this long to show. */
const QUIET_MS = 100;
/** Farewells get this long at the end; with the above it is less than half a second. */
const FLUSH_MS = 250;
/** From this part of the time on no new connections are taken. */
const LAST_CALL = 3 / 4;

export interface Drain {
  /** To be called whenever a request ended. */
  requestEnded(): void;
  /** Whether all requests ended in time; the server is closed then, or closes when its last connection does. */
  readonly done: Promise<boolean>;
}

/** Waits for the requests in flight and lets new ones come for as long as the time allows. */
export function startDrain(
  server: Server,
  connections: Connections,
  limits: ListenerLimits,
  graceMs: number,
): Drain {
  const end = Promise.withResolvers<boolean>();
  let quiet: NodeJS.Timeout | undefined;

  const requestEnded = (): void => {
    if (connections.active > 0) return;
    clearTimeout(quiet);
    quiet = setTimeout(() => {
      if (connections.active === 0) end.resolve(true);
    }, QUIET_MS);
  };
  const stopAccepting = (): void => {
    if (server.listening) server.close();
    for (const connection of connections) endConnection(connection, limits);
  };
  const lastCall = setTimeout(stopAccepting, graceMs * LAST_CALL);
  const deadline = setTimeout(() => end.resolve(false), graceMs);

  const finish = async (): Promise<boolean> => {
    const isQuiet = await end.promise;
    for (const timer of [quiet, lastCall, deadline]) clearTimeout(timer);
    if (!isQuiet) return false;
    stopAccepting();
    const flushed = Promise.withResolvers<void>();
    const flush = setTimeout(flushed.resolve, FLUSH_MS);
    connections.whenEmpty(flushed.resolve);
    await flushed.promise;
    clearTimeout(flush);
    return true;
  };

  for (const connection of connections) {
    if (connection.isServed && connection.open.size === 0) sendAway(connection, limits);
  }
  requestEnded();
  return { requestEnded, done: finish() };
}
