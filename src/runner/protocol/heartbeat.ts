import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "./back-off.ts";
import type { WorkClient } from "./connection.ts";
import { proxyText } from "./foreign-server.ts";

/** Interval until the service provides one. */
const DEFAULT_INTERVAL_MS = 20_000;
const CALL_MS = 10_000;

/** Sends heartbeats until `signal` is aborted, twice as often as required. */
export async function sendHeartbeats(
  client: WorkClient,
  instanceId: string,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  let waitMs = DEFAULT_INTERVAL_MS;
  while (!signal.aborted) {
    try {
      const { nextWithin } = await client.heartbeat({ instanceId }, { timeoutMs: CALL_MS, signal });
      failures = 0;
      waitMs = (nextWithin ? durationMs(nextWithin) : DEFAULT_INTERVAL_MS) / 2;
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      waitMs = backOffMs(failures);
      log.warn(
        { problem: proxyText(error) ?? (error as Error).message },
        "a heartbeat was not taken; trying again",
      );
    }
    await pause(waitMs, signal);
  }
}
