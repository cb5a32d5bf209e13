import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { ProberData, Waited } from "./prober-worker.ts";

export type { Waited };

/** Another client that sends a small request again and again. */
export interface Prober {
  /** Returns the longest wait and the peak memory since the last call, after one more response. */
  take(): Promise<Waited>;
  stop(): Promise<void>;
}

/** Sends requests from its own thread, so that the test's own work does not count as waiting. */
export function startProber(data: ProberData): Prober {
  const worker = new Worker(new URL("./prober-worker.ts", import.meta.url), { workerData: data });
  return {
    async take() {
      worker.postMessage("take");
      const [waited] = (await once(worker, "message")) as [Waited];
      return waited;
    },
    async stop() {
      await worker.terminate();
    },
  };
}
