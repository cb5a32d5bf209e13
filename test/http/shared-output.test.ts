import { afterAll, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { post } from "../harness/call.ts";
import { addMember } from "../harness/member.ts";
import { startServer, stopAll } from "../harness/server.ts";
import { workflowCalls } from "../harness/workflow.ts";
import { connectHttp2, open } from "./http2-client.ts";

afterAll(stopAll);

const WHO = "IdentityService/GetAuthenticatedIdentity";

/**
 * Starts a server with 1 MiB as the limit of one setting, and leaves a page of 2 MB unread; no
 * reader is cut only because it makes no progress.
 */
async function unreadPage(setting: string) {
  const server = await startServer({ args: [setting, "1", "--slow-reader-timeout", "3600"] });
  const { organizationId } = (await post(server, WHO)).body;
  const colleague = await addMember(server, { organizationId, email: `${v7()}@localhost` });
  const steps = Array(50).fill({ task: { command: "é".repeat(20_000) } });
  await workflowCalls(server).created({ action: { limits: { maxParallel: 1, maxTotal: 1 }, steps } });
  const session = await connectHttp2(server.port);
  const unread = open(session, "/api/service.v1.WorkflowService/ListWorkflows", {
    "content-type": "application/json",
    authorization: `Bearer ${server.token}`,
  });
  unread.end("{}");
  await new Promise((resolve) => unread.once("response", resolve));
  return { server, session, colleague: colleague.token };
}

test("what a caller leaves unread holds up its calls on other connections, and nobody else's", async () => {
  const { server, session, colleague } = await unreadPage("--output-per-caller");
  expect((await post(server, WHO, {}, colleague)).status).toBe(200);
  const { status, body } = await post(server, WHO, {}, server.token, { "connect-timeout-ms": "200" });
  expect([status, body.code]).toEqual([504, "deadline_exceeded"]);
  session.destroy();
  expect((await post(server, WHO)).status).toBe(200);
});

test("what all callers leave unread is bounded: the slowest reader is cut, and others go on", async () => {
  const { server, session, colleague } = await unreadPage("--output-total");
  expect((await post(server, WHO, {}, colleague)).status).toBe(200);
  session.destroy();
  await server.stop();
  const cuts = server.log().filter(({ msg }) => msg === "a slow reader was cut off");
  expect(cuts).toMatchObject([{ reason: "total" }]);
});
