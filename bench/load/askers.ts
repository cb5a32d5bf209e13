import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** The response times, in milliseconds, by asker. */
export type Waits = Readonly<Record<string, readonly number[]>>;

/** The name for the delays of a timer, which show what a busy machine adds to the response times. */
export const NOBODY = "nobody: how late a timer is";

export interface Asked {
  readonly url: string;
  readonly token: string;
  readonly projectId: string;
}

/** Clients that send small requests repeatedly. */
export interface Askers {
  /** Returns the response times since the last call, once all requests in flight are answered. */
  take(): Promise<Waits>;
  stop(): Promise<void>;
}

/** Starts the clients in a separate thread, so that work of this thread does not add to their response times. */
export function startAskers(asked: Asked): Askers {
  const worker = new Worker(new URL("./askers-worker.ts", import.meta.url), { workerData: asked });
  return {
    async take() {
      worker.postMessage("take");
      const [waits] = (await once(worker, "message")) as [Waits];
      return waits;
    },
    async stop() {
      await worker.terminate();
    },
  };
}
