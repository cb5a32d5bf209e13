import { describe, expect, test } from "@jest/globals";
import { SendToAgentExecutionRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { GetAuthenticatedIdentityRequestSchema } from "#gen/service/v1/identity_service_pb.js";
import { requestBounds } from "../../src/rpc/request/request-bounds.ts";
import { overHttp1, overHttp2 } from "./https-client.ts";
import type { CurrentSetting } from "./setting.ts";

/** The least and the largest cap of an operation's body. */
const LEAST = requestBounds(GetAuthenticatedIdentityRequestSchema).bytes;
const LARGEST = requestBounds(SendToAgentExecutionRequestSchema).bytes;

const IDENTITY = "/service.v1.IdentityService/GetAuthenticatedIdentity";
const SEND = "/service.v1.AgentService/SendToAgentExecution";
/** Ten images of 4 MiB, to an agent that is not there. */
const IMAGE = { data: Buffer.alloc(4 * 1024 * 1024, 0xa5).toString("base64"), mimeType: "image/png" };
const TO_NOBODY = JSON.stringify({
  agentExecutionId: "0190c0de-0000-7000-8000-000000000000",
  userInput: { inputs: Array.from({ length: 10 }, () => ({ image: IMAGE })) },
});

/** gRPC's code of a request that is too large. */
const RESOURCE_EXHAUSTED = "8";

/** Defines the tests that bodies pass as far as an operation takes them, and that it refuses larger ones itself. */
export function defineBodyTests(current: CurrentSetting): void {
  describe.each([
    ["HTTP/1.1", overHttp1],
    ["HTTP/2", overHttp2],
  ])("a body over %s", (_, send) => {
    const ask = async (path: string, body: string, more = {}, isEndless = false) => {
      const { proxy, servers } = current();
      const headers = { authorization: `Bearer ${servers.token}`, "content-type": "application/json" };
      const answer = await send(proxy, {
        path: `/api${path}`,
        headers: { ...headers, ...more },
        body,
        isEndless,
      });
      return [answer.status, JSON.parse(answer.text).code];
    };
    const TOO_LARGE = [429, "resource_exhausted"];

    test("passes up to the least cap of an operation, past which the service refuses it", async () => {
      expect(await ask(IDENTITY, "{}".padEnd(LEAST))).toEqual([200, undefined]);
      expect(await ask(IDENTITY, "{}".padEnd(LEAST + 1))).toEqual(TOO_LARGE);
    });

    test("passes up to the largest cap of an operation, past which the service refuses it", async () => {
      expect(await ask(SEND, TO_NOBODY.padEnd(LARGEST))).toEqual([404, "not_found"]);
      expect(await ask(SEND, TO_NOBODY.padEnd(LARGEST + 1))).toEqual(TOO_LARGE);
    });

    test("of a terabyte is refused before it has been sent", async () => {
      expect(await ask(SEND, "{", { "content-length": String(2 ** 40) }, true)).toEqual(TOO_LARGE);
    });
  });

  test("a message of gRPC passes up to the cap, past which the service refuses it", async () => {
    const { proxy, servers } = current();
    const codeOf = async (bytes: number) => {
      const headers = {
        authorization: `Bearer ${servers.token}`,
        "content-type": "application/grpc",
        te: "trailers",
      };
      const { trailers, headers: received } = await overHttp2(proxy, {
        ...{ path: IDENTITY, headers },
        body: messageOf(bytes),
      });
      return trailers["grpc-status"] ?? received["grpc-status"];
    };
    expect(await codeOf(LEAST)).toBe("0");
    expect(await codeOf(LEAST + 1)).toBe(RESOURCE_EXHAUSTED);
  });
}

/** Returns a message of so many bytes in its envelope: field 15, which the contract does not know, filled up. */
function messageOf(bytes: number): Buffer {
  const message = Buffer.alloc(5 + bytes);
  message.writeUInt32BE(bytes, 1);
  message.set([0x7a, 0x80, 0x80, 0x80, 0x00], 5);
  const content = bytes - 5;
  message.writeUIntLE(0x80 | (content & 0x7f), 6, 1);
  message.writeUIntLE(0x80 | ((content >> 7) & 0x7f), 7, 1);
  message.writeUIntLE(0x80 | ((content >> 14) & 0x7f), 8, 1);
  return message;
}
