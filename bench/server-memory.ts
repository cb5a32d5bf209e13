import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { TestServer } from "../test/harness/server.ts";
import { until } from "../test/harness/until.ts";

/** The environment of a server in which {@link anonymousKibAfterCollection} can trigger a garbage collection. */
export const COLLECTABLE = { NODE_OPTIONS: "--inspect-port=127.0.0.1:0" };

/** Time that the engine needs to return collected pages to the system. */
const GIVEN_BACK_MS = 500;

/** Returns the resident memory of a process, in KiB (VmRSS). Linux only. */
export function residentKib(processId: number | undefined): number {
  return statusKib(processId, "VmRSS");
}

/**
 * Triggers a garbage collection in a server.
 * @returns its anonymous memory afterwards, in KiB (RssAnon); Linux only
 */
export async function anonymousKibAfterCollection(server: TestServer): Promise<number> {
  const findUrl = () => /^Debugger listening on (ws:\S+)$/m.exec(server.logText())?.[1];
  // This signal makes Node listen for a debugger.
  if (findUrl() === undefined) server.process.kill("SIGUSR1");
  const socket = new WebSocket((await until(findUrl, (url) => url !== undefined)) ?? "");
  await once(socket, "open");
  // The second collection frees objects that the first one has finalized.
  for (const id of [1, 2]) {
    socket.send(JSON.stringify({ id, method: "HeapProfiler.collectGarbage" }));
    await once(socket, "message");
  }
  socket.close();
  await delay(GIVEN_BACK_MS);
  return statusKib(server.process.pid, "RssAnon");
}

function statusKib(processId: number | undefined, field: string): number {
  const status = readFileSync(`/proc/${processId}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
}
