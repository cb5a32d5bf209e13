import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(stopAll);

test("a workflow is stored and read back", async () => {
  const made = await post(server, "WorkflowService/CreateWorkflow", {
    name: "Nightly",
    triggers: [{ time: { cronExpression: "0 4 * * *" }, context: { agent: { prompt: "hello" } } }],
    action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] },
  });
  expect([made.status, made.body]).toEqual([200, made.body]);
  const { workflow } = made.body;
  expect(workflow.webhookUrl).toBe(`${server.url}/workflows/${workflow.id}/webhooks`);
  const read = await post(server, "WorkflowService/GetWorkflow", { workflowId: workflow.id });
  expect(read.body).toEqual({ workflow });
  const changed = await post(server, "WorkflowService/UpdateWorkflow", {
    workflowId: workflow.id,
    triggers: [],
  });
  expect(changed.body.workflow.spec.triggers).toEqual([]);
});
