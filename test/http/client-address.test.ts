import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { freePort } from "../harness/free-port.ts";
import { testUnless } from "../harness/program.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { answerOf, connectHttp2, open } from "./http2-client.ts";
import { connectRaw } from "./raw-client.ts";

const PATH = "/api/service.v1.IdentityService/GetAuthenticatedIdentity";

/** Returns the client that the access log has for a request. */
async function clientOf(server: HostedServer, requestId: unknown): Promise<unknown> {
  const find = () => server.log().find((line) => line.requestId === requestId);
  return (await until(find, (line) => line !== undefined))?.client;
}

/** Sends a request of HTTP/1.1 with these headers; resolves with the client in the log. */
async function overHttp1(server: HostedServer, headers: readonly string[]): Promise<unknown> {
  const client = await connectRaw(server.port);
  const lines = [`POST ${PATH} HTTP/1.1`, "Host: a", "Content-Length: 0", "Connection: close", ...headers];
  client.send(`${lines.join("\r\n")}\r\n\r\n`);
  const { text } = await client.closed;
  return clientOf(server, /^x-request-id: (\S+)/im.exec(text)?.[1]);
}

/** Sends a request of HTTP/2 with these values of X-Forwarded-For; resolves with the client in the log. */
async function overHttp2(server: HostedServer, values: string[]): Promise<unknown> {
  const session = await connectHttp2(server.port);
  const stream = open(session, PATH, { "x-forwarded-for": values });
  stream.end();
  const { headers } = await answerOf(stream);
  session.destroy();
  return clientOf(server, headers["x-request-id"]);
}

const header = (value: string) => `X-Forwarded-For: ${value}`;

afterAll(stopAll);

describe("a server with trusted proxies", () => {
  let server: HostedServer;
  beforeAll(async () => {
    server = await startHostedServer({
      args: ["--trusted-proxies", "127.0.0.1,10.0.0.0/8"],
    });
  });

  test("logs the client that the proxy names, over both protocols", async () => {
    expect(await overHttp1(server, [header("203.0.113.7")])).toBe("203.0.113.7");
    expect(await overHttp2(server, ["203.0.113.7"])).toBe("203.0.113.7");
  });

  test("logs the proxy where it names nobody", async () => {
    expect(await overHttp1(server, [])).toBe("127.0.0.1");
    expect(await overHttp1(server, [header("unknown")])).toBe("127.0.0.1");
    expect(await overHttp2(server, [])).toBe("127.0.0.1");
  });

  test("reads several headers as one list, over both protocols", async () => {
    const values = ["198.51.100.9", "203.0.113.7", "10.0.0.2"];
    expect(await overHttp1(server, values.map(header))).toBe("203.0.113.7");
    expect(await overHttp2(server, values)).toBe("203.0.113.7");
  });

  test("takes the longest list that its headers can hold", async () => {
    const list = `${"10.0.0.2, ".repeat(1_500)}203.0.113.7`;
    expect(await overHttp1(server, [header(list)])).toBe("203.0.113.7");
    expect(await overHttp2(server, [list])).toBe("203.0.113.7");
  });

  test("reads no other header", async () => {
    const others = ["Forwarded: for=203.0.113.7", "X-Real-IP: 203.0.113.7", "X-Forwarded: 203.0.113.7"];
    expect(await overHttp1(server, others)).toBe("127.0.0.1");
  });
});

const testOfIpv6 = testUnless(
  Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"))
    ? undefined
    : "this machine has no IPv6",
);

testOfIpv6("a server that listens on both families writes the addresses of IPv4 as such", async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const trusted = ["--trusted-proxies", "127.0.0.1"];
  const server = await startHostedServer({
    args: ["--host", "::", "--port", String(port), "--base-url", url, ...trusted],
  });
  expect(await overHttp1(server, [])).toBe("127.0.0.1");
  expect(await overHttp2(server, ["203.0.113.7"])).toBe("203.0.113.7");
});

describe.each([
  ["without trusted proxies", []],
  ["with trusted proxies elsewhere", ["--trusted-proxies", "10.0.0.0/8"]],
])("a server %s", (_, args) => {
  let server: HostedServer;
  beforeAll(async () => {
    server = await startHostedServer({ dataDir: temporaryFolder(), args });
  });

  test("logs the address of the connection, whatever a header says", async () => {
    expect(await overHttp1(server, [header("203.0.113.7")])).toBe("127.0.0.1");
    expect(await overHttp2(server, ["203.0.113.7", "10.0.0.2"])).toBe("127.0.0.1");
  });
});
