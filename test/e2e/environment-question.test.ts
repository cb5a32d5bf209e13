import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { freePort } from "../harness/free-port.ts";
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
let args: string[];
let origin: BareRepository;
beforeAll(async () => {
  args = ["--port", String(await freePort())];
  server = await startServer({ args });
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

  test("shows its files, in pages and parts", async () => {
    writeFileSync(join(tree, "b.txt"), "0123456789");
    writeFileSync(Buffer.concat([Buffer.from(`${tree}/c`), Buffer.from([0xff, 0x0a])]), "");
    symlinkSync("/etc", join(tree, "link"));
    const ofPage = (token: string) =>
      call("EnvironmentService/ListEnvironmentFiles", {
        environmentId,
        path: "hello",
        pagination: { pageSize: 2, token },
      });
    const first = await ofPage("");
    expect(first.files).toMatchObject([
      { name: "a.txt", kind: "KIND_FILE", sizeBytes: "4" },
      { name: "b.txt", kind: "KIND_FILE", sizeBytes: "10" },
    ]);
    const second = await ofPage(first.pagination.nextToken);
    expect(second.files).toMatchObject([
      { name: "c\u{fffd}\n", nameAltered: true },
      { name: "link", kind: "KIND_LINK" },
    ]);
    expect(second.pagination.nextToken).toBe("");
    const read = (path: string, offset = "0") =>
      post(server, "EnvironmentService/ReadEnvironmentFile", { environmentId, path, offset, maxBytes: 4 });
    const { file, data, nextOffset } = (await read("hello/b.txt", "5")).body;
    expect([file.name, atob(data), nextOffset]).toEqual(["b.txt", "5678", "9"]);
    expect((await read("hello/b.txt", "9")).body).toMatchObject({ data: btoa("9"), nextOffset: "0" });
    const reasonFor = async (path: string) => reasonOf(await read(path));
    expect(await reasonFor("hello/none")).toBe("NOT_FOUND");
    expect(await reasonFor("hello/link/hostname")).toBe("VALUE_UNUSABLE");
    expect(await reasonFor("hello/.git/config")).toBe("VALUE_UNUSABLE");
    expect(await reasonFor("../complete.json")).toBe("VALUE_UNUSABLE");
  });

  test("shows its diff to a commit in pages, which the runner makes", async () => {
    writeFileSync(join(tree, "a.txt"), "two\n");
    writeFileSync(join(tree, "b.txt"), "three\n");
    const commit = origin.find("main");
    const ofPage = (token: string, more = {}) =>
      post(server, "EnvironmentService/GetEnvironmentDiff", {
        environmentId,
        commit,
        pagination: { pageSize: 1, token },
        ...more,
      });
    const { body: first } = await ofPage("");
    expect(first.files).toMatchObject([{ path: "hello/a.txt", patch: "@@ -1 +1 @@\n-one\n+two\n" }]);
    const { body: second } = await ofPage(first.pagination.nextToken);
    expect(second.files).toMatchObject([{ path: "hello/b.txt", kind: "KIND_ADDED" }]);
    expect([second.pagination.nextToken, second.digest]).toEqual(["", first.digest]);
    const reasonFor = async (more: object) => reasonOf(await ofPage("", more));
    expect(await reasonFor({ commit: "0123456789" })).toBe("NOT_FOUND");
    expect(await reasonFor({ commit: "--output=x" })).toBe("CONSTRAINT_VIOLATED");
    expect(await reasonFor({ base: "DIFF_BASE_LAST_TURN" })).toBe("VALUE_UNUSABLE");
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
    expect(answer.body.message).toContain("can still be read with GetEnvironmentChanges");
    expect((await call("EnvironmentService/GetEnvironmentChanges", { environmentId })).changes).toBeDefined();
  });

  test("is looked at again when the server was killed while a question waited", async () => {
    runner.process.kill("SIGSTOP");
    const asked = refresh(environmentId).catch((error: Error) => error);
    await until(questions, (rows) => rows.length === 1);
    await server.kill();
    expect(await asked).toBeInstanceOf(Error);
    const { dataDir, token } = server;
    server = { ...(await startServer({ dataDir, args })), token };
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
