import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Log } from "../../log.ts";
import { backOffMs, pause } from "./back-off.ts";
import type { WorkClient } from "./connection.ts";

/** Until the service has said how often it wants to hear of the runner. */
const FIRST_MS = 20_000;
const CALL_MS = 10_000;

/** Says that the runner is alive until `signal` is aborted, twice as often as it must. */
export async function sendHeartbeats(client: WorkClient, log: Log, signal: AbortSignal): Promise<void> {
  let failures = 0;
  let waitMs = FIRST_MS;
  while (!signal.aborted) {
    try {
      const { nextWithin } = await client.heartbeat({}, { timeoutMs: CALL_MS, signal });
      failures = 0;
      waitMs = (nextWithin ? durationMs(nextWithin) : FIRST_MS) / 2;
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      waitMs = backOffMs(failures);
      log.warn({ problem: (error as Error).message }, "a heartbeat was not taken; trying again");
    }
    await pause(waitMs, signal);
  }
}
