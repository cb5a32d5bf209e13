import { createHmac, hkdfSync } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { createContextValues, type UnaryRequest } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { AgentService, SendToAgentExecutionRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { keysFrom } from "../keys.ts";
import { repeatableKey } from "../services/call/idempotency.ts";
import { deterministicBytes } from "./deterministic-bytes.ts";
import { IDEMPOTENCY_KEY, idempotencyKeys } from "./idempotency-key.ts";
import { parsedRequestKey } from "./request/parsed-request.ts";

const secrets = [2, 1].map((fill) => new Uint8Array(32).fill(fill));
const { beginRequestMacs } = keysFrom(...secrets);
const interceptor = idempotencyKeys(beginRequestMacs);

function images(changed = 0) {
  const inputs = Array.from({ length: 10 }, (_, index) => {
    const data = new Uint8Array(4 * 1024 * 1024).fill(index);
    if (index === 9) data[data.length - 1] = changed;
    return { input: { case: "image" as const, value: { data, mimeType: "image/png" } } };
  });
  return create(SendToAgentExecutionRequestSchema, {
    agentExecutionId: "one",
    input: { case: "userInput", value: { id: "two", inputs } },
  });
}

/** Returns the hashes of a request, and how many event loop turns others had until they were computed. */
async function noted(message: ReturnType<typeof images>, isLarge: boolean) {
  const contextValues = createContextValues();
  if (isLarge) contextValues.set(parsedRequestKey, message);
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const request = {
    stream: false,
    service: AgentService,
    method: AgentService.method.sendToAgentExecution,
    header: new Headers({ [IDEMPOTENCY_KEY]: "key" }),
    contextValues,
    message,
  };
  await interceptor(async () => {
    isOver = true;
    return undefined as never;
  })(request as unknown as UnaryRequest);
  return { hashes: contextValues.get(repeatableKey)?.hashes, turns };
}

describe("a large request with a key", () => {
  test("has the hashes that answers are kept under, and of no other request", async () => {
    const message = images();
    const { hashes } = await noted(message, true);
    const kept = secrets.map((secret) => {
      const key = Buffer.from(hkdfSync("sha256", secret, "", "chartroom repeatable request", 32));
      const mac = createHmac("sha256", key).update("service.v1.AgentService/SendToAgentExecution\0");
      return mac.update(deterministicBytes(SendToAgentExecutionRequestSchema, message)).digest();
    });
    expect(hashes).toEqual(kept);
    expect((await noted(message, false)).hashes).toEqual(kept);
    const { hashes: others } = await noted(images(1), true);
    expect(others?.some((other) => hashes?.some((hash) => Buffer.compare(hash, other) === 0))).toBe(false);
  });

  test("lets others have their turn while it is hashed", async () => {
    expect((await noted(images(), true)).turns).toBeGreaterThan(1);
  });
});
