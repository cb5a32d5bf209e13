import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Answer, post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { freePort } from "../harness/free-port.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { withRawData } from "../harness/raw-data.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReceivedRequest, type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const TOKEN = "token-of-the-caller";

let server: TestServer;
let host: ScmHost;
let origin: BareRepository;
let environmentId: string;
let args: string[];
let serverArgs: string[];
/** Lets the remote take what it is sent. */
let release: () => void;
beforeEach(async () => {
  host = await startScmHost({ kind: "gitlab", token: TOKEN });
  args = ["--allow-private-remotes", "--plain-http-hosts", host.host];
  serverArgs = [...args, "--port", String(await freePort())];
  server = await startServer({ args: serverArgs });
  const { runnerId, stateDir } = await startRegisteredRunner(server, { args });
  const credential = { runnerId, host: host.host, token: TOKEN };
  await call("RunnerConfigurationService/CreateHostAuthenticationToken", credential);
  origin = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  origin.git("config", "http.receivepack", "true");
  const spec = { content: { initializer: repository(host.addRepository("team/hello", origin.folder)) } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Large", spec });
  environmentId = environment.id;
  // The runner listens once it says that there is nothing to push.
  await until(
    () => asked("PushEnvironmentBranch"),
    ({ body }) => /nothing has changed/.test(body.message),
  );
  writeFileSync(join(stateDir, "workspaces", environmentId, "tree/hello/b.txt"), "two\n");
  const held = Promise.withResolvers<void>();
  release = held.resolve;
  host.fail({ until: held.promise }, { when: isPush, times: 99 });
});
afterEach(async () => {
  release();
  await stopRunners();
  await Promise.all([server.stop(), host.stop()]);
});
afterAll(stopAll);

const isPush = ({ method, target }: ReceivedRequest) =>
  method === "POST" && target.endsWith("/git-receive-pack");
const call = (operation: string, body: object): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body));
/** Calls with a deadline, of which the server waits a part. */
const asked = (operation: string, deadlineMs = 600_000) =>
  post(
    server,
    `EnvironmentService/${operation}`,
    { environmentId, branch: "b", commitMessage: "Add b" },
    undefined,
    { "connect-timeout-ms": String(deadlineMs) },
  );
/** The server waits four fifths of it, so that a machine that stalls for a moment answers in time. */
const SOON_MS = 6_000;
const ended = (operation: string) =>
  until(
    () => asked(operation),
    ({ body }) => body.push?.state === "STATE_DONE",
  );
const questions = () =>
  withRawData(server.dataDir, (raw) => raw.rows<{ body: string }>("select body from environment_question"));

test("a push that takes long goes on while nobody waits, says how far it is, and is done once", async () => {
  const first = await until(
    () => asked("PushEnvironmentBranch", SOON_MS),
    ({ body }) => !!body.push?.commit,
  );
  expect(first.body.push).toMatchObject({
    environmentId,
    branch: "b",
    state: "STATE_GOING_ON",
    outcome: "OUTCOME_UNSPECIFIED",
  });
  // Once its end was put off, the runner says what it is at.
  const { body } = await until(
    () => asked("PushEnvironmentBranch", SOON_MS),
    (answer) => answer.body.push?.progress?.stage === "STAGE_SENDING",
  );
  expect(body.push).toMatchObject({ state: "STATE_GOING_ON", branch: "b" });
  expect(await questions()).toHaveLength(1);
  release();
  const done = await ended("PushEnvironmentBranch");
  expect(done.body.push).toMatchObject({
    outcome: "OUTCOME_CREATED",
    commit: origin.find("b"),
  });
  expect(done.body.push.progress ?? null).toBeNull();
  expect(origin.messages("b")).toHaveLength(2);
  expect(await questions()).toEqual([]);
  const { entries } = await call("EventService/ListAuditLogs", { pagination: { pageSize: 100 } });
  expect(entries.some(({ action }: { action: string }) => action === "environment/pushed")).toBe(true);
});

test("a pull request is opened once the push has ended, also after the server was killed meanwhile", async () => {
  await until(
    () => asked("OpenPullRequest", SOON_MS),
    ({ body }) => body.push?.state === "STATE_GOING_ON" && body.push.commit !== "",
  );
  const { dataDir, token } = server;
  await server.kill();
  server = { ...(await startServer({ dataDir, args: serverArgs })), token };
  const { body } = await until(
    () => asked("OpenPullRequest", SOON_MS),
    (answer) => answer.status === 200,
  );
  expect(body.push.state).toBe("STATE_GOING_ON");
  expect(body.pullRequest ?? null).toBeNull();
  release();
  const done = await ended("OpenPullRequest");
  expect(done.body).toMatchObject({
    push: { outcome: "OUTCOME_CREATED", commit: origin.find("b") },
    pullRequest: { pullRequest: { fromBranch: "b", toBranch: "main" } },
  });
  expect(host.pullRequests()).toHaveLength(1);
});
