import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { AnswerRequestRequestSchema } from "#gen/runner/v1/environment_question_pb.js";
import { EnvironmentWorkService } from "#gen/runner/v1/environment_work_service_pb.js";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution } from "../harness/started-execution.ts";
import { readStream } from "../harness/stream-reader.ts";

let server: HostedServer;
let runner: FakeRunner;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  runner = await registerRunner(server);
});
afterAll(stopAll);

/** Brings up the environment of an action; returns its id. */
async function environmentOnRunner(): Promise<string> {
  await startExecution(server);
  const work = await runner.leaseOne();
  await succeeded(runner.report(work, { environment: { phase: "ENVIRONMENT_PHASE_RUNNING" } }));
  return work.action.environment.id;
}

test("counts of changes whose sum is no number of the contract leave the environment readable", async () => {
  const environmentId = await environmentOnRunner();
  const most = { changedFiles: 2 ** 31 - 1, addedLines: String(2n ** 63n - 1n), deletedLines: "1" };
  const repositories = ["one", "two"].map((folder) => ({ folder, counts: most }));
  const report = (body: object) =>
    succeeded(
      post(
        server,
        "EnvironmentWorkService/ReportEnvironmentChanges",
        { environmentId, ...body },
        runner.token,
      ),
    );
  const counts = async () =>
    (await succeeded(post(server, "EnvironmentService/GetEnvironmentChanges", { environmentId }))).changes
      .counts;
  await report({ repositories });
  expect(await counts()).toMatchObject({ ...most, deletedLines: "2" });
  await report({ repositories: repositories.slice(1) });
  expect(await counts()).toMatchObject(most);
});

test("a file of an answer whose time no response can have is refused, and the question stays open", async () => {
  const environmentId = await environmentOnRunner();
  const instanceId = "the one";
  await succeeded(runner.call("BeginInstance", { instanceId }));
  const transport = createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });
  const stream = readStream(runner.token, (options) =>
    createClient(EnvironmentWorkService, transport).watchRequests({ instanceId }, options),
  );
  await stream.opened;
  const ask = async (operation: string, body: object) => {
    const known = new Set(stream.messages.map(({ question }) => question?.id));
    const asked = post(server, `EnvironmentService/${operation}`, { environmentId, ...body });
    const { question } = await stream.find(({ question }) => !!question && !known.has(question.id));
    return { questionId: question?.id ?? "", asked };
  };
  /** In binary, the one form that can express such a time. */
  const answer = async (questionId: string, files: object): Promise<Pick<Answer, "status" | "body">> => {
    const request = create(AnswerRequestRequestSchema, { questionId, instanceId, answer: files as never });
    const response = await fetch(`${server.url}/api/runner.v1.EnvironmentWorkService/AnswerRequest`, {
      method: "POST",
      headers: { "content-type": "application/proto", authorization: `Bearer ${runner.token}` },
      body: toBinary(AnswerRequestRequestSchema, request) as BodyInit,
    });
    return { status: response.status, body: response.ok ? undefined : await response.json() };
  };
  const file = { name: "a.txt", kind: 1, modifiedAt: { seconds: 253_402_300_800n, nanos: 0 } };
  const timeless = { name: "a.txt", kind: 1 };
  for (const [operation, path, bad, good] of [
    ["ListEnvironmentFiles", "", fileList(file), fileList(timeless)],
    ["ReadEnvironmentFile", "a.txt", filePart(file), filePart(timeless)],
  ] as const) {
    const { questionId, asked } = await ask(operation, { path });
    const refused = await answer(questionId, bad);
    expect([refused.status, reasonOf(refused as Answer)]).toEqual([400, "VALUE_UNUSABLE"]);
    expect((await answer(questionId, good)).status).toBe(200);
    expect((await asked).status).toBe(200);
  }
  stream.cancel();
});

const fileList = (file: object) => ({ case: "fileList", value: { files: [file] } });
const filePart = (file: object) => ({ case: "filePart", value: { file, data: new Uint8Array() } });
