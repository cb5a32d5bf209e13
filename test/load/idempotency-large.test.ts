import { createHash } from "node:crypto";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  type LeasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { startHostedServer, stopAll } from "../harness/server.ts";

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

let home: AgentFixture;
let run: LeasedAgentExecution;
beforeAll(async () => {
  home = await createAgentFixture(await startHostedServer({ args: LONG_LEASES }));
  run = await startLeasedAgentExecution(home);
});
afterAll(stopAll);

const image = (last: number) => Buffer.concat([PNG, Buffer.alloc(4_000_000, 7), Buffer.from([last])]);

/** Sends images to the run, always under one key; the status, and whether the answer was one that was kept. */
async function send(images: readonly Buffer[], form: "json" | "proto") {
  const { input } = AgentService.method.sendToAgentExecution;
  const inputs = images.map((data) => ({
    input: { case: "image" as const, value: { data: new Uint8Array(data), mimeType: "image/png" } },
  }));
  const request = create(input, {
    agentExecutionId: run.id,
    input: { case: "userInput" as const, value: { id: "images", inputs } },
  });
  const res = await fetch(`${home.server.url}/api/service.v1.AgentService/SendToAgentExecution`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${home.token}`,
      "content-type": `application/${form}`,
      "idempotency-key": "images",
    },
    body: (form === "json" ? toJsonString(input, request) : toBinary(input, request)) as BodyInit,
  });
  return [res.status, res.headers.get("idempotency-replayed")];
}

test("an idempotency key knows large images in every form, and others by their last byte", async () => {
  const images = [image(0), image(1)];
  expect(await send(images, "json")).toEqual([200, null]);
  const digest = createHash("sha256").update(image(1)).digest();
  const others = [
    [image(0), image(2)],
    [image(1), image(0)],
    [image(0)],
    [image(0), Buffer.concat([PNG, digest])],
  ];
  for (const form of ["json", "proto"] as const) {
    expect(await send(images, form)).toEqual([200, "true"]);
    for (const other of others) expect(await send(other, form)).toEqual([409, null]);
  }
  expect((await run.queue()).ids).toEqual(["images"]);
});
