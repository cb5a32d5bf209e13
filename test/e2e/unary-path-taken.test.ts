import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { callGrpc, envelope } from "../rpc/raw-call.ts";

afterAll(stopAll);

const OPERATION = "service.v1.IdentityService/GetAuthenticatedIdentity";

const GRPC_OPERATION = "IdentityService/GetAuthenticatedIdentity";
const EMPTY = new Uint8Array();

/** Sends the same call in a way that the path of our own leaves to the protocol layer. */
async function sendCompressed({ url, token }: TestServer): Promise<number> {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "content-encoding": "gzip",
  };
  const { status } = await fetch(`${url}/api/${OPERATION}`, {
    method: "POST",
    headers,
    body: gzipSync("{}"),
  });
  return status;
}

/** How often the path of our own answered, by what the engine has counted; nothing tells from outside. */
function timesTaken(folder: string): number {
  const counts = readdirSync(folder).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(folder, name), "utf8")) as Coverage;
    const files = result.filter(({ url }) => url.endsWith("/src/unary/write-response.ts"));
    const functions = files.flatMap((file) => file.functions);
    return functions
      .filter(({ functionName }) => functionName === "writeResponse")
      .map(({ ranges }) => ranges[0]?.count ?? 0);
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly count: number }[];
    }[];
  }[];
}

test.each([
  ["switched on", ["--fast-path", "on"], 6],
  ["switched off", ["--fast-path", "off"], 0],
] as const)("the path of our own answers what it takes, %s, and no other call", async (_, args, expected) => {
  const folder = temporaryFolder();
  // What comes from the compile cache is not counted.
  const env = { NODE_V8_COVERAGE: folder, NODE_DISABLE_COMPILE_CACHE: "1" };
  const server = await startServer({ args, env });
  for (let call = 0; call < 3; call++) {
    expect((await post(server, "IdentityService/GetAuthenticatedIdentity")).status).toBe(200);
    expect(await sendCompressed(server)).toBe(200);
    expect(await callGrpc(server, GRPC_OPERATION, envelope(EMPTY))).toBeUndefined();
    const gzip = { "grpc-encoding": "gzip" };
    expect(await callGrpc(server, GRPC_OPERATION, envelope(gzipSync(EMPTY), 1), gzip)).toBeUndefined();
  }
  await server.stop();
  expect(timesTaken(folder)).toBe(expected);
});
