import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** How long each answer took that somebody got, in milliseconds, by who asked. */
export type Waits = Readonly<Record<string, readonly number[]>>;

/** Who does not ask, but tells how much later than asked for a timer is: what a busy machine adds to the waits. */
export const NOBODY = "nobody: how late a timer is";

export interface Asked {
  readonly url: string;
  readonly token: string;
  readonly projectId: string;
}

/** Those who ask small questions again and again. */
export interface Askers {
  /** Returns the waits since the last time, once each has got the answer that it waits for. */
  take(): Promise<Waits>;
  stop(): Promise<void>;
}

/** Asks from a thread of its own, so that nothing that this one does is taken for a wait. */
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
