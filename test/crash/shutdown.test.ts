import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import { afterAll, expect, test } from "@jest/globals";
import { post, reasonOf, repository } from "../harness/call.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { answerOf, connectHttp2, open } from "../http/http2-client.ts";

afterAll(stopAll);

const PATH = "/api/service.v1.ProjectService/CreateProject";
/** From the last answer to the end of the process: less than the 10 s that a server waits for its callers. */
const MOST_MS = 9_000;

const headers = (server: TestServer, body: string) => ({
  authorization: `Bearer ${server.token}`,
  "content-type": "application/json",
  "content-length": body.length,
});
const bodyOf = (name: string) =>
  JSON.stringify({ name, initializer: repository("https://git.example.org/team/slow.git") });

/** Sends the headers and half of the body, and resolves when the server has taken the request up. */
async function halfUpload(server: TestServer, body: string): Promise<ClientRequest> {
  const req = request(server.url + PATH, {
    method: "POST",
    headers: { ...headers(server, body), expect: "100-continue" },
  });
  req.flushHeaders();
  // The server asks for the body only when the caller has passed the gate.
  await once(req, "continue");
  req.write(body.slice(0, body.length / 2));
  return req;
}

const readiness = async (server: TestServer) => (await fetch(`${server.url}/readyz`)).status;

async function untilRed(server: TestServer): Promise<void> {
  while ((await readiness(server)) !== 503);
}

test("a server that is asked to stop turns red, finishes what it took up, and goes", async () => {
  const server = await startServer();
  const body = bodyOf("Slow on HTTP/1.1");
  const upload = await halfUpload(server, body);
  const session = await connectHttp2(server.port);
  const stream = open(session, PATH, { ...headers(server, body), expect: "100-continue" });
  await once(stream, "continue");
  stream.write(body.slice(0, 10));
  const [streamed, uploaded] = [answerOf(stream), once(upload, "response")];
  // Not at "exit": its last lines may not have been read by then.
  const exit = once(server.process, "close");

  server.process.kill("SIGTERM");
  await untilRed(server);
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  const late = await post(server, "ProjectService/ListProjects");
  expect([late.status, late.body.code, reasonOf(late)]).toEqual([503, "unavailable", "UNAVAILABLE"]);
  server.process.kill("SIGTERM");
  server.process.kill("SIGINT");
  expect(await readiness(server)).toBe(503);

  stream.end(body.slice(10));
  expect((await streamed).status).toBe(200);
  upload.end(body.slice(body.length / 2));
  const [res] = (await uploaded) as [IncomingMessage];
  const answered = performance.now();
  expect(res.statusCode).toBe(200);
  const { project } = (await json(res)) as { project: { id: string } };
  expect(await exit).toEqual([0, null]);
  expect(performance.now() - answered).toBeLessThan(MOST_MS);
  expect(server.log().map(({ msg }) => msg)).toEqual(expect.arrayContaining(["stopping", "stopped"]));
  session.destroy();

  const again = await startServer({ dataDir: server.dataDir });
  const found = await post(again, "ProjectService/GetProject", { projectId: project.id }, server.token);
  expect([found.status, found.body.project.metadata.name]).toEqual([200, "Slow on HTTP/1.1"]);
  expect(again.output()).not.toContain("cr_pat_");
});

test.each(["SIGTERM", "SIGINT"] as const)(
  "a server with nothing to do goes at once on %s",
  async (signal) => {
    const server = await startServer();
    expect((await post(server, "ProjectService/ListProjects")).status).toBe(200);
    // Connections that wait for a next request hold nothing up.
    const session = await connectHttp2(server.port);
    const exit = once(server.process, "exit");
    const askedAt = performance.now();
    server.process.kill(signal);
    expect(await exit).toEqual([0, null]);
    expect(performance.now() - askedAt).toBeLessThan(MOST_MS);
    session.destroy();
  },
);
