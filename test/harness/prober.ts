import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { ProberData, Waited } from "./prober-worker.ts";

export type { Waited };

/** Another caller, who asks a small question again and again. */
export interface Prober {
  /** Returns the longest wait and the largest memory since the last time, once another answer came. */
  take(): Promise<Waited>;
  stop(): Promise<void>;
}

/** Asks from a thread of its own, so that nothing that the test does is taken for a wait. */
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
