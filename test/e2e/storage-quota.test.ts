import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { untilForgotten, withRawData } from "../harness/raw-data.ts";
import { runHostedCommand, startServer, stopAll, type TestServer } from "../harness/server.ts";
import { countedBytes, storageProblems } from "../harness/stored-bytes.ts";
import { until } from "../harness/until.ts";
import { addWorkflow, deliver, ledgerOf, MANUAL, ONE_COMMAND, verdictsOf } from "../harness/webhook.ts";

const ARGS = ["--organization-quota", "1"];

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ args: ARGS });
});
afterAll(stopAll);

/** A workflow of about 60 kB for each step. */
const large = (steps: number) => ({
  name: "Large",
  triggers: [MANUAL],
  action: {
    ...ONE_COMMAND,
    steps: Array.from({ length: steps }, () => ({ task: { command: "雨".repeat(20_000) } })),
  },
});
const create = (steps: number, token = server.token) =>
  post(server, "WorkflowService/CreateWorkflow", large(steps), token);

test("an organization at its quota writes nothing more until it deletes; others go on", async () => {
  const island = await addOrganization(server, "island");
  const hooked = await addWorkflow(server);
  const made = await create(12);
  expect(made.status).toBe(200);
  const workflowId = made.body.workflow.id;

  const refused = await create(10);
  expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
    429,
    "resource_exhausted",
    "STORAGE_QUOTA_EXCEEDED",
  ]);
  expect(refused.body.message).toMatch(
    /^the organization stores \d+ bytes, would store \d+ and may store 1048576: delete /,
  );

  // An execution copies its workflow, so that the hook's own, small one fits and the large one does not.
  expect((await post(server, "WorkflowService/StartWorkflow", { workflowId })).status).toBe(429);
  expect((await ledgerOf(server, workflowId)).map(({ verdict }) => verdict)).toEqual([
    "TRIGGER_VERDICT_REFUSED",
  ]);
  const secret = await post(server, "WorkflowService/GetWorkflowWebhookSecret", { workflowId });
  const delivery = { "x-gitlab-token": secret.body.secret };
  expect(verdictsOf(await deliver(server, workflowId, '{"parameters":{}}', delivery))).toEqual([
    200,
    "REFUSED",
  ]);
  const [, entry] = await ledgerOf(server, workflowId);
  expect(entry.reason).toMatch(/may store 1048576/);
  const small = await deliver(server, hooked.id, '{"parameters":{}}', { "x-gitlab-token": hooked.secret });
  expect(verdictsOf(small)).toEqual([202, "STARTED"]);
  expect((await create(10, island.token)).status).toBe(200);

  expect((await post(server, "WorkflowService/DeleteWorkflow", { workflowId, force: true })).status).toBe(
    200,
  );
  const again = await until(
    async () => create(10),
    ({ status }) => status === 200,
  );
  expect(again.status).toBe(200);
});

test("the count holds over a kill, and the operator reads it", async () => {
  await server.kill();
  const { dataDir, token } = server;
  await untilForgotten(dataDir);
  expect(await withRawData(dataDir, storageProblems)).toEqual([]);
  server = { ...(await startServer({ dataDir, args: ARGS })), token };
  expect(reasonOf(await create(10))).toBe("STORAGE_QUOTA_EXCEEDED");
  const listed = await runHostedCommand(["organization", "list", "--data-dir", dataDir]);
  const lines = listed.stdout.trimEnd().split("\n");
  const counted = await withRawData(dataDir, countedBytes);
  expect(new Map(lines.map((line) => [line.split(/ +/)[0], Number(line.split(/ +/)[1])]))).toEqual(counted);
  await server.stop();
  // A quota of 0 is none.
  server = { ...(await startServer({ dataDir, args: ["--organization-quota", "0"] })), token };
  expect((await create(10)).status).toBe(200);
});
