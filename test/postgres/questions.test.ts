import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { EnvironmentWorkService } from "#gen/runner/v1/environment_work_service_pb.js";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { endNodes } from "../harness/node-process.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { stopAll, type TestServer } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";
import { startExecution } from "../harness/started-execution.ts";
import { readStream } from "../harness/stream-reader.ts";
import { until } from "../harness/until.ts";

const INSTANCE = "the first";

let cluster: PostgresCluster;
let one: TestServer;
let other: TestServer;
let third: TestServer;
let runner: FakeRunner;
let environmentId: string;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  const servers = await startServers(await emptyDatabase(cluster), 3);
  [one, other, third] = servers as [TestServer, TestServer, TestServer];
  runner = await registerRunner(one);
  await succeeded(runner.call("BeginInstance", { instanceId: INSTANCE }));
  const spec = { machine: { class: runner.environmentClassId } };
  const made = await succeeded(post(one, "EnvironmentService/CreateEnvironment", { name: "Asked", spec }));
  environmentId = made.environment.id;
});
afterAll(async () => {
  await stopAll();
  await endNodes();
  await cluster?.stop();
});

/** Opens the stream of questions at a server. */
const watchAt = (server: TestServer) => {
  const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
  const client = createClient(EnvironmentWorkService, transport);
  return readStream(runner.token, (options) => client.watchRequests({ instanceId: INSTANCE }, options));
};
const askAt = (server: TestServer): Promise<Answer> =>
  post(server, "EnvironmentService/GetEnvironmentChanges", { environmentId, refresh: true }, one.token);
const answerAt = async (server: TestServer, questionId: string | undefined) => {
  await succeeded(
    post(server, "EnvironmentWorkService/ReportEnvironmentChanges", { environmentId }, runner.token),
  );
  const answer = { questionId, instanceId: INSTANCE, changesRefreshed: {} };
  await succeeded(post(server, "EnvironmentWorkService/AnswerRequest", answer, runner.token));
};

test("a question at one server goes by the stream of another, and is answered through a third", async () => {
  const stream = watchAt(other);
  await stream.opened;
  const asked = askAt(one);
  const { question } = await stream.find(({ question }) => question !== undefined);
  await answerAt(third, question?.id);
  expect((await asked).status).toBe(200);
  stream.cancel();
});

test("a newer stream at another server ends the one before, and gets what waits", async () => {
  const first = watchAt(other);
  await first.opened;
  const asked = askAt(one);
  const before = await first.find(({ question }) => question !== undefined);
  const second = watchAt(third);
  const after = await second.find(({ question }) => question !== undefined);
  expect(after.question?.id).toBe(before.question?.id);
  expect((await first.ended).message).toContain("ended without an error");
  await answerAt(one, after.question?.id);
  expect((await asked).status).toBe(200);
  second.cancel();
  const silent = await until(
    () => askAt(one),
    ({ status }) => status !== 200,
  );
  expect(reasonOf(silent)).toBe("ENVIRONMENT_UNREACHABLE");
});

test("work that is to stop is named once by the runner's stream at another server", async () => {
  const run = await startExecution(one, { environmentClassId: runner.environmentClassId });
  const { leaseId } = await runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
  const first = watchAt(other);
  await first.opened;
  await run.cancel();
  const { leaseIds } = await first.find(({ leaseIds }) => leaseIds.length > 0);
  expect(leaseIds).toEqual([leaseId]);
  // What a new stream names is what is to stop when it opens.
  const second = watchAt(third);
  await second.find(({ leaseIds }) => leaseIds.includes(leaseId));
  const asked = askAt(one);
  const { question } = await second.find(({ question }) => question !== undefined);
  await answerAt(one, question?.id);
  expect((await asked).status).toBe(200);
  expect(second.messages.flatMap(({ leaseIds }) => leaseIds)).toEqual([leaseId]);
  second.cancel();
});

test("a question outlives the server that held the runner's stream", async () => {
  const first = watchAt(other);
  await first.opened;
  const asked = askAt(one);
  const { question } = await first.find(({ question }) => question !== undefined);
  await other.kill();
  await first.ended;
  const second = watchAt(third);
  const after = await second.find(({ question }) => question !== undefined);
  expect(after.question?.id).toBe(question?.id);
  await answerAt(third, after.question?.id);
  expect((await asked).status).toBe(200);
});
