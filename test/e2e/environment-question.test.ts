import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { withRawData } from "../harness/raw-data.ts";
import {
  type RunnerProcess,
  startRegisteredRunner,
  startRunnerProcess,
  stopRunners,
} from "../harness/runner-process.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: TestServer;
let origin: BareRepository;
beforeAll(async () => {
  server = await startServer();
  origin = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
});
afterAll(stopAll);

const call = (operation: string, body: object) => succeeded(post(server, operation, body));
const refresh = (environmentId: string): Promise<Answer> =>
  post(server, "EnvironmentService/GetEnvironmentChanges", { environmentId, refresh: true });
const questions = () =>
  withRawData(server.dataDir, (raw) => raw.rows<{ id: string }>("select id from environment_question"));

/** An environment that is up on the one runner; its id and the folder of its repository. */
async function environmentOn({ stateDir }: Pick<RunnerProcess, "stateDir">, classId: string) {
  const spec = { content: { initializer: repository(origin.url) }, machine: { class: classId } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Asked", spec });
  const environmentId: string = environment.id;
  await until(
    () => call("EnvironmentService/GetEnvironment", { environmentId }),
    (found) => found.environment.status.phase === "ENVIRONMENT_PHASE_RUNNING",
  );
  return { environmentId, tree: join(stateDir, "workspaces", environmentId, "tree/hello") };
}
const classOf = async (runnerId: string): Promise<string> => {
  const filter = { runnerIds: [runnerId] };
  const listed = await call("RunnerConfigurationService/ListEnvironmentClasses", { filter });
  return listed.environmentClasses[0].id;
};

describe("an environment on a runner", () => {
  let runner: RunnerProcess & { readonly runnerId: string };
  let environmentId: string;
  let tree: string;
  beforeEach(async () => {
    runner = await startRegisteredRunner(server);
    ({ environmentId, tree } = await environmentOn(runner, await classOf(runner.runnerId)));
    // The stream is open once the first question is answered.
    await until(
      () => refresh(environmentId),
      ({ status }) => status === 200,
    );
  });
  afterEach(stopRunners);

  test("is looked at on demand, and the question goes with its answer", async () => {
    writeFileSync(join(tree, "b.txt"), "two\n");
    const { body } = await refresh(environmentId);
    expect(body.changes.counts).toMatchObject({ addedFiles: 1, addedLines: "1" });
    expect(await questions()).toEqual([]);
  });

  test("is looked at by the runner's next program when that is killed before it answers", async () => {
    runner.process.kill("SIGSTOP");
    writeFileSync(join(tree, "b.txt"), "two\n");
    const asked = refresh(environmentId);
    await until(questions, (rows) => rows.length === 1);
    await runner.kill();
    startRunnerProcess(server, { stateDir: runner.stateDir });
    expect((await asked).body.changes.counts).toMatchObject({ addedFiles: 1 });
    expect(await questions()).toEqual([]);
  });

  test("cannot be looked at once its runner is stopped, which is said at once", async () => {
    await runner.stop();
    const answer = await until(
      () => refresh(environmentId),
      ({ status }) => status !== 200,
    );
    expect([answer.body.code, reasonOf(answer)]).toEqual(["failed_precondition", "ENVIRONMENT_UNREACHABLE"]);
    expect(answer.body.message).toContain("stays readable with GetEnvironmentChanges");
    expect((await call("EnvironmentService/GetEnvironmentChanges", { environmentId })).changes).toBeDefined();
  });

  test("is looked at again when the server was killed while a question waited", async () => {
    runner.process.kill("SIGSTOP");
    const asked = refresh(environmentId).catch((error: Error) => error);
    await until(questions, (rows) => rows.length === 1);
    const { port } = new URL(server.url);
    await server.kill();
    expect(await asked).toBeInstanceOf(Error);
    const { dataDir, token } = server;
    server = { ...(await startServer({ dataDir, args: ["--port", port] })), token };
    runner.process.kill("SIGCONT");
    writeFileSync(join(tree, "b.txt"), "two\n");
    const { body } = await until(
      () => refresh(environmentId),
      ({ status }) => status === 200,
    );
    expect(body.changes.counts).toMatchObject({ addedFiles: 1 });
  });
});

test("an environment on a runner that never listens cannot be looked at, which is said at once", async () => {
  const runner = await registerRunner(server);
  const spec = { machine: { class: runner.environmentClassId } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Unheard", spec });
  const answer = await refresh(environment.id);
  expect([answer.body.code, reasonOf(answer)]).toEqual(["failed_precondition", "ENVIRONMENT_UNREACHABLE"]);
  expect(answer.body.message).toContain("does not listen");
});
