import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { type Asked, NOBODY } from "./askers.ts";

/** Pause between an answer and the next request. */
const PAUSE_MS = 2;

const { url, token, projectId } = workerData as Asked;
const kept = () => new Agent({ keepAlive: true, maxSockets: 1 });
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const project = {
  agent: kept(),
  headers,
  method: "POST",
  path: "/api/service.v1.ProjectService/GetProject",
};
const ASKERS: [name: string, options: object, body: string][] = [
  ["/healthz", { agent: kept(), path: "/healthz" }, ""],
  ["/healthz, a new connection each time", { agent: false, path: "/healthz" }, ""],
  ["GetProject", project, JSON.stringify({ projectId })],
];
const { hostname, port } = new URL(url);

let waits: Record<string, number[]> = {};
const running = new Set<Promise<void>>();

parentPort?.on("message", async () => {
  // Requests in flight belong to the results so far.
  await Promise.all(running);
  parentPort?.postMessage(waits);
  waits = {};
});

for (const [name, options, body] of ASKERS) void askOn(name, options, body);
void wakeUp();

async function askOn(name: string, options: object, body: string): Promise<never> {
  for (;;) {
    const began = performance.now();
    const asking = ask(options, body);
    running.add(asking);
    await asking;
    running.delete(asking);
    note(name, performance.now() - began);
    await pause(PAUSE_MS);
  }
}

async function wakeUp(): Promise<never> {
  for (;;) {
    const began = performance.now();
    await pause(PAUSE_MS);
    note(NOBODY, performance.now() - began - PAUSE_MS);
  }
}

function note(name: string, ms: number): void {
  waits[name] ??= [];
  waits[name].push(ms);
}

function ask(options: object, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const req = request({ hostname, port, ...options }, (res) => {
      const done = () => (res.statusCode === 200 ? resolve() : reject(new Error(`${res.statusCode}`)));
      res.resume().on("end", done);
    });
    req.on("error", reject).end(body);
  });
}
