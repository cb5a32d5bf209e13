import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

export interface ProberData {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

export interface Waited {
  readonly longestMs: number;
  readonly asked: number;
  /** Peak memory of the server's process; 0 where the system does not report it. */
  readonly peakBytes: number;
}

/** Between a response and the next request. */
const PAUSE_MS = 2;
const PAGE_BYTES = 4_096;

const { url, token, pid } = workerData as ProberData;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let longestMs = 0;
let asked = 0;
let peakBytes = 0;
let taking = false;

parentPort?.on("message", () => {
  taking = true;
});

for (;;) {
  const begin = performance.now();
  await ask();
  longestMs = Math.max(longestMs, performance.now() - begin);
  asked++;
  peakBytes = Math.max(peakBytes, residentBytes());
  if (taking) {
    parentPort?.postMessage({ longestMs, asked, peakBytes } satisfies Waited);
    [taking, longestMs, asked, peakBytes] = [false, 0, 0, 0];
  }
  await pause(PAUSE_MS);
}

function ask(): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const path = `${url}/api/service.v1.IdentityService/GetAuthenticatedIdentity`;
    const req = request(path, { method: "POST", headers, agent }, (res) => {
      res
        .resume()
        .on("end", () => (res.statusCode === 200 ? resolve() : reject(new Error(`${res.statusCode}`))));
    });
    req.on("error", reject).end("{}");
  });
}

function residentBytes(): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}
