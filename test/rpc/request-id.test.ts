import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { post, repository } from "../harness/call.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { answerOf, connectHttp2, open } from "../http/http2-client.ts";
import { envelope } from "./raw-call.ts";

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

/** Requests of every fate; the id and the code that the log must have for each. */
async function everyFate(): Promise<Map<string | null, string>> {
  const codes = new Map<string | null, string>();
  const note = async (code: string, res: Promise<{ headers: Headers }> | Promise<{ header: Headers }>) => {
    const answer = await res;
    codes.set(("headers" in answer ? answer.headers : answer.header).get("x-request-id"), code);
  };
  const { url, token } = server;
  const path = `${url}/api/service.v1.ProjectService/ListProjects`;
  const authorization = `Bearer ${token}`;
  const initializer = repository("https://git.example.org/a");
  await note("ok", post(server, "ProjectService/CreateProject", { initializer }));
  await note("not_found", post(server, "ProjectService/GetProject", { projectId: v7() }));
  await note("invalid_argument", post(server, "ProjectService/GetProject", { projectId: "x" }));
  await note("invalid_argument", post(server, "ProjectService/GetProject", "{"));
  await note("unauthenticated", post(server, "ProjectService/ListProjects", {}, "cr_pat_nobody"));
  await note("failed_precondition", post(server, "AgentService/StartAgent", {}));
  await note(
    "resource_exhausted",
    post(server, "IdentityService/GetAuthenticatedIdentity", " ".repeat(70_000)),
  );
  await note("not_found", fetch(`${url}/nothing`, { headers: { authorization } }));
  await note("unauthenticated", fetch(`${url}/nothing`));
  await note("unimplemented", fetch(path, { headers: { authorization } }));
  await note("unimplemented", fetch(path, { method: "POST", headers: { authorization }, body: "{}" }));
  const session = await connectHttp2(server.port);
  for (const [code, body] of [
    ["ok", envelope(Buffer.alloc(0))],
    ["invalid_argument", envelope(Buffer.from([0x0a]))],
  ] as const) {
    const stream = open(session, "/service.v1.ProjectService/ListProjects", {
      ...{ authorization, "content-type": "application/grpc", te: "trailers" },
    });
    stream.end(body);
    codes.set(String((await answerOf(stream)).headers["x-request-id"]), code);
  }
  session.destroy();
  return codes;
}

test("every answer carries a request id, which is with its code in exactly one line of the log", async () => {
  const codes = await everyFate();
  expect(codes.size).toBe(13);
  expect(codes.has(null)).toBe(false);
  // A line is written when its answer has left; after the end of the process all of them are.
  await server.stop();
  const lines = server.log().filter(({ requestId }) => requestId !== undefined);
  expect(lines).toHaveLength(codes.size);
  expect(new Map(lines.map(({ requestId, code }) => [requestId, code]))).toEqual(codes);
  for (const { durationMs, operation, msg, status } of lines) {
    expect([typeof durationMs, typeof operation, typeof status, msg]).toEqual([
      "number",
      "string",
      "number",
      "call",
    ]);
  }
  const known = lines.filter(({ code }) => code !== "unauthenticated");
  expect(
    known.map(({ caller, organization, token }) => [caller, organization, token].includes(undefined)),
  ).toEqual(known.map(() => false));
  expect(server.logText()).not.toContain(server.token);
});
