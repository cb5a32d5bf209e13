import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createContextValues } from "@connectrpc/connect";
import { expect, test } from "@jest/globals";
import { IdentityService } from "#gen/service/v1/identity_service_pb.js";
import { UnaryCall } from "./unary-call.ts";

const CONNECT = { protocolName: "connect", timeoutMs: undefined } as const;

/** Creates a call for a real request, and passes it to the test. */
async function inside(look: (call: UnaryCall, req: IncomingMessage, res: ServerResponse) => void) {
  const server = createServer((req, res) => {
    const method = IdentityService.method.getAuthenticatedIdentity;
    const call = new UnaryCall(req, res, method as never, createContextValues(), CONNECT);
    let failure: unknown;
    try {
      look(call, req, res);
    } catch (error) {
      failure = error;
    }
    call.end();
    res.end(failure === undefined ? "" : String(failure));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const received = await (await fetch(`http://127.0.0.1:${port}/`, { headers: { "x-own": "a" } })).text();
  server.close();
  server.closeAllConnections();
  expect(received).toBe("");
}

test("headers and signal of a call are made at the first look, once", async () => {
  await inside((call, req, res) => {
    const listeners = () => res.listenerCount("close");
    const before = listeners();
    expect([call.responseHeaderIfAny, call.responseTrailerIfAny]).toEqual([undefined, undefined]);
    // Headers that were created together with the call would not contain this one.
    req.headers["x-late"] = "b";
    expect([call.header.get("x-own"), call.header.get("x-late")]).toEqual(["a", "b"]);
    expect(call.requestHeader).toBe(call.header);
    call.responseHeader.set("x-answer", "c");
    expect(call.responseHeaderIfAny?.get("x-answer")).toBe("c");
    expect(listeners()).toBe(before);
    const { signal } = call;
    expect([signal.aborted, listeners() - before]).toEqual([false, 1]);
    expect(call.signal).toBe(signal);
    expect(listeners() - before).toBe(1);
  });
});
