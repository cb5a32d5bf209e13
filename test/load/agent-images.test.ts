import { request } from "node:http";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  AgentWorkService,
  StreamInputsRequestSchema,
  type StreamInputsResponse,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { mainThreadMs } from "../harness/cpu-time.ts";
import { envelope } from "../harness/envelope.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  type LeasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { type Prober, startProber } from "../harness/prober.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { readStream } from "../harness/stream-reader.ts";

const PNG = Buffer.from("89504e470d0a1a0a", "hex");
const MIB = 1024 * 1024;

/** Five times the bar of 100 ms. In one go, JSON takes seven seconds and 1,600 MiB. */
const LONGEST_MS = 500;
const ATTEMPTS = 6;

/** The largest message of all: ten images of 4 MiB. Each is another, so that none can take another's place. */
const IMAGES = Array.from({ length: 10 }, (_, index) =>
  Buffer.concat([PNG, Buffer.alloc(4 * MIB - PNG.length, index + 1)]),
);

let server: TestServer;
let home: AgentFixture;
let run: LeasedAgentExecution;
let prober: Prober;
beforeAll(async () => {
  server = await startServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
  run = await startLeasedAgentExecution(home);
  const { url, token, process } = server;
  prober = startProber({ url, token, pid: process.pid as number });
  const { input } = AgentService.method.sendToAgentExecution;
  const inputs = IMAGES.map((data) => ({
    input: { case: "image" as const, value: { data: new Uint8Array(data), mimeType: "image/png" } },
  }));
  const message = create(input, {
    agentExecutionId: run.id,
    input: { case: "userInput" as const, value: { id: "images", inputs } },
  });
  const res = await fetch(`${url}/api/service.v1.AgentService/SendToAgentExecution`, {
    method: "POST",
    headers: { authorization: `Bearer ${home.token}`, "content-type": "application/proto" },
    body: toBinary(input, message) as BodyInit,
  });
  expect(res.status).toBe(200);
  await run.say("small");
});
afterAll(async () => {
  await prober.stop();
  await stopAll();
});

const lease = () => ({ leaseId: run.work.leaseId as string, fence: BigInt(run.work.fence) });

/** The images of a delivery that are not byte for byte those that were sent. */
function damaged({ input }: StreamInputsResponse): number[] {
  const parts = input?.input.case === "userInput" ? input.input.value.inputs : [];
  expect(parts).toHaveLength(IMAGES.length);
  return IMAGES.flatMap((sent, index) => {
    const part = parts[index]?.input;
    return part?.case === "image" && sent.equals(part.value.data) ? [] : [index];
  });
}

/** Opens the stream as a runner that counts what it receives and keeps nothing; it leaves at a number of bytes. */
function countBytes(form: "json" | "proto", leaveAt = Number.POSITIVE_INFINITY): Promise<number> {
  const message = create(StreamInputsRequestSchema, lease());
  const schema = StreamInputsRequestSchema;
  const body = form === "json" ? Buffer.from(toJsonString(schema, message)) : toBinary(schema, message);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const req = request(`${home.server.url}/api/runner.v1.AgentWorkService/StreamInputs`, {
    method: "POST",
    headers: { authorization: `Bearer ${home.runner.token}`, "content-type": `application/connect+${form}` },
  });
  req.on("error", reject);
  req.on("response", (res) => {
    let head = Buffer.alloc(0);
    let received = 0;
    res.on("data", (chunk: Buffer) => {
      if (head.length < 5) head = Buffer.concat([head, chunk]);
      received += chunk.length;
      const length = head.length < 5 ? Number.POSITIVE_INFINITY : head.readUInt32BE(1) + 5;
      if (received < Math.min(length, leaveAt)) return;
      resolve(received);
      req.destroy();
    });
    res.on("end", () => reject(new Error(`the stream ended after ${received} bytes`)));
    res.on("error", () => undefined);
  });
  req.end(envelope(body));
  return promise;
}

describe("ten images of 4 MiB", () => {
  const protocols: [string, (baseUrl: string) => Transport][] = [
    ["Connect, binary", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
    [
      "Connect, JSON",
      (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false }),
    ],
    ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
    [
      "gRPC-Web, JSON",
      (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
    ],
  ];

  test.each(protocols)("reach a runner whole, and the message after them too, over %s", async (_, open) => {
    const client = createClient(AgentWorkService, open(home.server.url));
    const reading = readStream(home.runner.token, (options) => client.streamInputs(lease(), options));
    const [delivery] = await reading.until(1);
    expect(damaged(delivery as StreamInputsResponse)).toEqual([]);
    expect(delivery?.input?.id).toBe("images");
    reading.cancel();
  });

  test.each(["json", "proto"] as const)("make nobody else wait when they are sent as %s", async (form) => {
    await prober.take();
    const { peakBytes: idleBytes } = await prober.take();
    let stalledMs = LONGEST_MS;
    // A wait that is the server's own comes each time; one that the machine had does not.
    for (let attempt = 0; stalledMs >= LONGEST_MS && attempt < ATTEMPTS; attempt++) {
      await prober.take();
      const workedBefore = mainThreadMs(server.process);
      expect(await countBytes(form)).toBeGreaterThan(40 * MIB);
      const { longestMs, peakBytes } = await prober.take();
      // A call that waits longer than the server's own thread worked waits for other processes of the machine.
      stalledMs = Math.min(longestMs, mainThreadMs(server.process) - workedBefore);
      expect((peakBytes - idleBytes) / MIB).toBeLessThan(256);
    }
    expect(stalledMs).toBeLessThan(LONGEST_MS);
  });

  test("are delivered again to a runner that was cut off in the middle of them", async () => {
    expect(await countBytes("json", MIB)).toBeLessThan(40 * MIB);
    const reading = run.inputs();
    const [delivery] = await reading.until(1);
    expect(damaged(delivery as StreamInputsResponse)).toEqual([]);
    await run.begin("images");
    await run.wait();
    const deliveries = await reading.until(2);
    expect(deliveries.map(({ input }) => input?.id)).toEqual(["images", "small"]);
    reading.cancel();
  });
});
