import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import type { LoadResult, LoadTask } from "./task.ts";

/** The process that generates the load. */
export interface Load {
  run(task: LoadTask): Promise<LoadResult>;
  stop(): void;
}

export function startLoad(): Load {
  const child: ChildProcess = fork(join(import.meta.dirname, "load-process.ts"));
  return {
    run: (task) =>
      new Promise((resolve, reject) => {
        const ended = () => reject(new Error("the process that makes the load ended"));
        child.once("exit", ended);
        child.once("message", (result: LoadResult) => {
          child.off("exit", ended);
          resolve(result);
        });
        child.send(task);
      }),
    stop: () => void child.kill(),
  };
}
