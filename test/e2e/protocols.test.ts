import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { speakBufCurl } from "./speak/buf-curl.ts";
import { bearer, speakConnect } from "./speak/connect.ts";
import { speakFetch } from "./speak/fetch.ts";
import { speakGrpcJs } from "./speak/grpc-js.ts";
import type { Outcome, Speak } from "./speak/outcome.ts";
import { tellStory } from "./story.ts";

let server: ReachableServer;
let byFetch: (readonly [string, Outcome])[];
beforeAll(async () => {
  // The project that the story deletes must still be there when it is looked at.
  server = await startHostedServer({ args: ["--removal-interval", "86400"] });
  byFetch = await tellStory(speakFetch(server));
});
afterAll(stopAll);

describe("the story of a project", () => {
  test("by hand-written JSON has the ends that the contract promises", () => {
    expect(
      byFetch.map(([operation, outcome]) => [operation, "answer" in outcome ? "ok" : outcome.code]),
    ).toEqual([
      ["CreateProject", "ok"],
      ["GetProject", "ok"],
      ["ListProjects", "ok"],
      ["UpdateProject", "ok"],
      ["UpdateProject", "invalid_argument"],
      ["DeleteProject", "ok"],
      ["GetProject", "ok"],
      ["GetProject", "not_found"],
    ]);
    expect(byFetch[4]?.[1]).toEqual({
      code: "invalid_argument",
      message:
        "name must be between 1 and 80 characters [name]; path must not be absolute (start with a /) [automationsFilePath]",
      reason: "CONSTRAINT_VIOLATED",
      metadata: { violations: "2" },
      violations: [
        { rule: "name_length", field: "name" },
        { rule: "relative_path", field: "automations_file_path" },
      ],
    });
    expect(byFetch[7]?.[1]).toEqual({
      code: "not_found",
      message: "project not found",
      reason: "NOT_FOUND",
      metadata: { resource: "project" },
      violations: [],
    });
  });

  const same = async (speak: Speak) => expect(await tellStory(speak)).toEqual(byFetch);

  describe.each(["1.1", "2"] as const)("over HTTP/%s", (httpVersion) => {
    const options = (prefix = "/api") => ({
      baseUrl: server.url + prefix,
      httpVersion,
      interceptors: [bearer(server.token)],
    });

    test.each([
      ["JSON", false],
      ["binary", true],
    ])("is the same to a generated Connect client in %s", async (_, useBinaryFormat) => {
      await same(speakConnect(createConnectTransport({ ...options(), useBinaryFormat })));
    });

    test("is the same to a gRPC-Web client, with the prefix and without", async () => {
      await same(speakConnect(createGrpcWebTransport(options())));
      await same(speakConnect(createGrpcWebTransport({ ...options(""), useBinaryFormat: false })));
    });
  });

  test("is the same to a gRPC client of Connect, with the prefix and without", async () => {
    const interceptors = [bearer(server.token)];
    await same(speakConnect(createGrpcTransport({ baseUrl: `${server.url}/api`, interceptors })));
    await same(
      speakConnect(createGrpcTransport({ baseUrl: server.url, interceptors, useBinaryFormat: false })),
    );
  });

  test("is the same to requests and answers that are compressed", async () => {
    const interceptors = [bearer(server.token)];
    const options = { interceptors, sendCompression: compressionGzip, compressMinBytes: 1 };
    await same(speakConnect(createGrpcTransport({ baseUrl: server.url, ...options })));
    const baseUrl = `${server.url}/api`;
    await same(speakConnect(createConnectTransport({ baseUrl, httpVersion: "1.1", ...options })));
  });

  test("is the same to grpc-js, which loads the .proto files and cannot carry a prefix", async () => {
    const speak = speakGrpcJs(server);
    await same(speak);
    speak.close();
  });

  test.each(["connect", "grpc", "grpcweb"])("is the same to buf curl that speaks %s", async (protocol) => {
    const flags = ["--schema", "proto", "--protocol", protocol];
    await same(speakBufCurl(`${server.url}/api`, server.token, flags));
  });

  test("is the same to buf curl that learns the contract from the server", async () => {
    const flags = ["--protocol", "grpc", "--reflect-header", `Authorization: Bearer ${server.token}`];
    await same(speakBufCurl(server.url, server.token, flags));
  });
});

test.each([
  ["an operation that does not exist, to a caller with a token", true, status.UNIMPLEMENTED],
  ["the same, to a caller without one", false, status.UNAUTHENTICATED],
])("gRPC's own code is what gRPC clients see of %s", async (_, known, code) => {
  const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  const metadata = new Metadata();
  if (known) metadata.set("authorization", `Bearer ${server.token}`);
  const same = (bytes: Buffer) => bytes;
  const error = await new Promise<ServiceError | null>((resolve) =>
    client.makeUnaryRequest(
      "/service.v1.ProjectService/Nothing",
      same,
      same,
      Buffer.alloc(0),
      metadata,
      resolve,
    ),
  );
  client.close();
  expect(error?.code).toBe(code);
});
