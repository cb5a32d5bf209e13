import { describe, expect, test } from "@jest/globals";
import { until } from "../harness/until.ts";
import { overHttp1, overHttp2, type ProxiedRequest } from "./https-client.ts";
import type { CurrentSetting } from "./setting.ts";

/** An address of this machine that is no proxy's. */
const FROM = "127.0.0.9";
/** An address that a client claims to have. */
const CLAIMED = "203.0.113.7";

/** Defines the tests that a client's address reaches the log, and no other. */
export function defineAddressTests(current: CurrentSetting): void {
  describe("the address of a client", () => {
    /** Sends a call; resolves with the client that the log has for it. */
    const clientOf = async (send: typeof overHttp1, more: ProxiedRequest["headers"]) => {
      const { servers, proxy } = current();
      const { headers, status } = await send(proxy, {
        path: "/api/service.v1.IdentityService/GetAuthenticatedIdentity",
        headers: { authorization: `Bearer ${servers.token}`, "content-type": "application/json", ...more },
        body: "{}",
        from: FROM,
      });
      expect(status).toBe(200);
      const find = () => servers.calls().find(({ requestId }) => requestId === headers["x-request-id"]);
      return (await until(find, (line) => line !== undefined))?.client;
    };

    describe.each([
      ["HTTP/1.1", overHttp1],
      ["HTTP/2", overHttp2],
    ])("over %s", (_, send) => {
      test("is in the access log", async () => {
        expect(await clientOf(send, {})).toBe(FROM);
      });

      test.each([
        ["one header", { "x-forwarded-for": CLAIMED }],
        ["the proxy's address", { "x-forwarded-for": `${CLAIMED}, 127.0.0.1` }],
        ["several headers", { "x-forwarded-for": [CLAIMED, "127.0.0.1", "10.0.0.1"] }],
        ["a list as long as a header can be", { "x-forwarded-for": `${CLAIMED}, `.repeat(500) + CLAIMED }],
        ["other headers", { forwarded: `for=${CLAIMED}`, "x-real-ip": CLAIMED, "x-client-ip": CLAIMED }],
      ])("cannot be forged by %s", async (_, headers) => {
        expect(await clientOf(send, headers)).toBe(FROM);
      });
    });

    test("of gRPC is in the access log", async () => {
      const { servers, proxy } = current();
      const { headers } = await overHttp2(proxy, {
        path: "/service.v1.IdentityService/GetAuthenticatedIdentity",
        headers: {
          authorization: `Bearer ${servers.token}`,
          "content-type": "application/grpc",
          te: "trailers",
          "x-forwarded-for": CLAIMED,
        },
        body: Buffer.alloc(5),
        from: FROM,
      });
      const find = () => servers.calls().find(({ requestId }) => requestId === headers["x-request-id"]);
      expect(await until(find, (line) => line !== undefined)).toMatchObject({ client: FROM, code: "ok" });
    });
  });
}
