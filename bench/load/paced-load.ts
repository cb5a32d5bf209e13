import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { percentile } from "../figures.ts";
import type { LoadRequest, LoadResult, LoadTask } from "./task.ts";

/**
 * Sends requests at a fixed rate. Measures each from the time when it was due,
 * so that the figures include delays that the server causes.
 */
export async function pacedLoad(task: LoadTask): Promise<LoadResult> {
  const { everyMs = 1, seconds, requests } = task;
  const agent = new Agent({ keepAlive: true, maxSockets: task.connections });
  const count = Math.ceil((seconds * 1000) / everyMs);
  const timesMs: number[] = [];
  let failed = 0;
  const answers: Promise<void>[] = [];
  const began = performance.now();
  for (let index = 0; index < count; index++) {
    const dueAt = began + index * everyMs;
    const waitMs = dueAt - performance.now();
    if (waitMs > 0) await delay(waitMs);
    const one = requests[index % requests.length] as LoadRequest;
    answers.push(
      ask(agent, task, one).then((status) => {
        timesMs.push(performance.now() - dueAt);
        if (status !== 200) failed++;
      }),
    );
  }
  await Promise.all(answers);
  agent.destroy();
  return {
    answered: timesMs.length - failed,
    failed,
    tookMs: performance.now() - began,
    p50Ms: percentile(timesMs, 50),
    p99Ms: percentile(timesMs, 99),
    longestMs: percentile(timesMs, 100),
    timesMs,
  };
}

/** Sends a request and returns the status of the answer; 0 when there is none. */
function ask(agent: Agent, { url, token }: LoadTask, { operation, body }: LoadRequest): Promise<number> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const req = request(`${url}/api/service.v1.${operation}`, { method: "POST", agent, headers }, (res) => {
      res.resume();
      res.on("end", () => resolve(res.statusCode ?? 0));
    });
    req.on("error", () => resolve(0));
    req.end(body);
  });
}
