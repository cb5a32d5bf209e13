import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer as createHttp, type IncomingMessage } from "node:http";
import { createServer as createHttps, request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { askForToken } from "../../src/commands/client/device-login.ts";
import {
  type HostedServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { selfSigned } from "../http/certificate.ts";
import { bearer, speakConnect } from "./speak/connect.ts";
import { loadService } from "./speak/grpc-js.ts";
import { tellStory } from "./story.ts";

const { key, cert } = selfSigned();
/** The certificate is its own authority, and names no host. */
const trust = { ca: cert, checkServerIdentity: () => undefined };

let server: HostedServer;
beforeAll(async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "key.pem"), key);
  writeFileSync(join(folder, "cert.pem"), cert);
  server = await startHostedServer({
    args: ["--tls-cert", join(folder, "cert.pem"), "--removal-interval", "86400"],
    env: { CHARTROOM_TLS_KEY: join(folder, "key.pem") },
  });
});
afterAll(stopAll);

describe("with a key and a certificate", () => {
  test("the server says that it is reached by https, also in the call to paste", () => {
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(server.output()).toContain(`curl ${server.url}/api/`);
  });

  test("HTTP/1.1, HTTP/2 and gRPC over TLS tell the same story", async () => {
    const options = {
      baseUrl: `${server.url}/api`,
      interceptors: [bearer(server.token)],
      nodeOptions: trust,
    };
    const [first, ...others] = [
      await tellStory(speakConnect(createConnectTransport({ ...options, httpVersion: "1.1" }))),
      await tellStory(speakConnect(createConnectTransport({ ...options, httpVersion: "2" }))),
      await tellStory(speakConnect(createGrpcTransport(options))),
    ];
    expect(first).toHaveLength(8);
    expect(others).toEqual([first, first]);
  });

  test("grpc-js gets through as well", async () => {
    const Health = loadService("grpc/health/v1/health.proto", "grpc.health.v1.Health");
    const channel = credentials.createSsl(Buffer.from(cert), null, null, trust);
    // A server name of TLS is no address.
    const options = { "grpc.ssl_target_name_override": "localhost" };
    const client = new Health(`127.0.0.1:${server.port}`, channel, options);
    const answer = await new Promise((resolve) =>
      client.check?.({}, new Metadata(), (error: unknown, found: unknown) => resolve(error ?? found)),
    );
    client.close();
    expect(answer).toEqual({ status: "SERVING" });
  });

  test("a client that names no protocol gets HTTP/1.1", async () => {
    const req = request(`${server.url}/healthz`, trust);
    req.end();
    const [res] = (await once(req, "response")) as [IncomingMessage];
    expect([res.statusCode, res.httpVersion, await text(res)]).toEqual([200, "1.1", '{"status":"ok"}']);
  });

  test("a client that does not trust the certificate does not get through, nor does one without TLS", async () => {
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
    await expect(fetch(`http://127.0.0.1:${server.port}/healthz`)).rejects.toThrow();
  });
});

test("a command that does not trust the certificate, or speaks no TLS, says what to do", async () => {
  const listRuns = async (url: string) => {
    const env = { CHARTROOM_SERVER: url, CHARTROOM_TOKEN: server.token, XDG_CONFIG_HOME: temporaryFolder() };
    return (await runHostedCommand(["run", "list"], env)).stderr;
  };
  const untrusted = await listRuns(server.url);
  expect(untrusted).toMatch(
    /its certificate is not trusted: .* NODE_EXTRA_CA_CERTS.* \(self-signed certificate\)\n$/,
  );
  const plain = server.url.replace("https:", "http:");
  expect(await listRuns(plain)).toBe(
    `chartroom: the server ${plain} cannot be reached: it closes the connection: if it speaks TLS there, use https://\n`,
  );
});

test.each([
  [
    "https",
    createHttps({ key, cert }),
    /^its certificate is not trusted: .*NODE_EXTRA_CA_CERTS.* \(self-signed certificate\)$/,
  ],
  ["http", createHttps({ key, cert }), /^it closes the connection: if it speaks TLS there, use https:\/\/$/],
  ["https", createHttp(), /^it does not speak TLS there: try http:\/\/$/],
] as const)(
  "a login in a browser by %s at another kind of server says the same",
  async (scheme, other, problem) => {
    await once(other.listen(0, "127.0.0.1"), "listening");
    const url = `${scheme}://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const start = `the server ${url} cannot be reached: `;
    try {
      const { message } = await askForToken({ server: url, output: new PassThrough(), machine: "" }).then(
        () => new Error("it got a token"),
        (error: Error) => error,
      );
      expect(message).toContain(start);
      expect(message.slice(start.length)).toMatch(problem);
    } finally {
      other.closeAllConnections();
      other.close();
    }
  },
);

test("a start with a certificate that has expired says so in the log", async () => {
  const folder = temporaryFolder();
  const expired = selfSigned("20");
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(certFile, expired.cert);
  writeFileSync(keyFile, expired.key);
  const late = await startHostedServer({ args: ["--tls-cert", certFile, "--tls-key", keyFile] });
  const ended = "2020-12-31T23:59:59.000Z";
  expect(late.log()).toContainEqual(expect.objectContaining({ level: "warn", tlsCert: certFile, ended }));
  expect(server.log()).not.toContainEqual(expect.objectContaining({ ended: expect.anything() }));
});
