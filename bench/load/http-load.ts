import { fromJsonString, toBinary } from "@bufbuild/protobuf";
import autocannon from "autocannon";
import { GetProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { percentile } from "../figures.ts";
import type { LoadResult, LoadTask } from "./task.ts";

/** Interval at which autocannon checks whether the run is over. */
const LOOK_MS = 20;

/** Long, since a slow answer is a result and not a failure. */
const TIMEOUT_SECONDS = 60;

/** Number of different requests that a connection sends in turn. More would take longer to create than to send. */
const REQUESTS_A_CONNECTION = 50;

/** Runs a load over HTTP/1.1 with autocannon. Each connection begins at a different position in the requests. */
export function httpLoad(task: LoadTask): Promise<LoadResult> {
  const isBinary = task.form === "binary";
  const requests = task.requests.map(({ operation, body, token }) => ({
    path: `/api/service.v1.${operation}`,
    ...(token && { headers: { authorization: `Bearer ${token}` } }),
    body: isBinary
      ? Buffer.from(toBinary(GetProjectRequestSchema, fromJsonString(GetProjectRequestSchema, body)))
      : body,
  }));
  const timesMs: number[] = [];
  // All requests of each connection are prepared before the load begins. Together the connections send every request.
  const most = Math.max(REQUESTS_A_CONNECTION, Math.ceil(requests.length / task.connections));
  let connection = 0;
  let began = 0;
  let lastAt = 0;
  return new Promise((resolve, reject) => {
    const running = autocannon(
      {
        url: task.url,
        connections: task.connections,
        ...(task.amount === undefined
          ? { duration: task.seconds }
          : { amount: Math.max(task.amount, task.connections) }),
        sampleInt: LOOK_MS,
        timeout: TIMEOUT_SECONDS,
        method: "POST",
        headers: {
          authorization: `Bearer ${task.token}`,
          "content-type": isBinary ? "application/proto" : "application/json",
        },
        setupClient(client) {
          const first = Math.floor((connection++ * requests.length) / task.connections);
          // Copies, since autocannon caches prepared data in a request.
          const own = [...requests.slice(first), ...requests.slice(0, first)].slice(0, most);
          client.setRequests(own.map((each) => ({ ...each })));
        },
      },
      (error, result) => {
        if (error) return reject(error);
        const answered = result["2xx"];
        // A server that closes a connection leaves a request unanswered, without an error.
        const lost = task.amount === undefined ? 0 : Math.max(task.amount, task.connections) - answered;
        resolve({
          answered,
          failed: result.errors + Math.max(result.non2xx, lost),
          tookMs: lastAt - began,
          p50Ms: percentile(timesMs, 50),
          p99Ms: percentile(timesMs, 99),
          longestMs: percentile(timesMs, 100),
        });
      },
    );
    running.on("start", () => {
      began = performance.now();
    });
    running.on("response", (_client, _status, _bytes, tookMs: number) => {
      timesMs.push(tookMs);
      lastAt = performance.now();
    });
  });
}
