import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type Answer, post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { freePort } from "../harness/free-port.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import {
  type RunnerProcess,
  startRegisteredRunner,
  startRunnerProcess,
  stopRunners,
} from "../harness/runner-process.ts";
import { type Fault, type ReceivedRequest, type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const TOKEN = "token-of-the-caller";

let server: TestServer;
let host: ScmHost;
let origin: BareRepository;
let runner: RunnerProcess & { readonly runnerId: string };
let environmentId: string;
let args: string[];
let serverArgs: string[];

beforeEach(async () => {
  host = await startScmHost({ kind: "github", token: TOKEN });
  args = ["--allow-private-remotes", "--plain-http-hosts", host.host];
  serverArgs = [...args, "--port", String(await freePort())];
  server = await startServer({ args: serverArgs });
  runner = await startRegisteredRunner(server, { args });
  const credential = { runnerId: runner.runnerId, host: host.host, token: TOKEN };
  await call("RunnerConfigurationService/CreateHostAuthenticationToken", credential);
  origin = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  origin.git("config", "http.receivepack", "true");
  const spec = { content: { initializer: repository(host.addRepository("team/hello", origin.folder)) } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Killed", spec });
  environmentId = environment.id;
  // The runner listens once it says that there is nothing to push.
  await until(push, ({ body }) => /nothing has changed/.test(body.message));
  writeFileSync(join(runner.stateDir, "workspaces", environmentId, "tree/hello/b.txt"), "two\n");
});
afterEach(async () => {
  await stopRunners();
  await Promise.all([server.stop(), host.stop()]);
});
afterAll(stopAll);

const call = (operation: string, body: object): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body));
const push = (): Promise<Answer> =>
  post(server, "EnvironmentService/PushEnvironmentBranch", {
    environmentId,
    branch: "b",
    commitMessage: "Add b",
  });
const open = (): Promise<Answer> =>
  post(server, "EnvironmentService/OpenPullRequest", {
    environmentId,
    branch: "b",
    commitMessage: "Add b",
    title: "Add b",
    body: "It was missing.",
  });

const isPush = ({ method, target }: ReceivedRequest) =>
  method === "POST" && target.endsWith("/git-receive-pack");
const isOpening = ({ method, target }: ReceivedRequest) => method === "POST" && target.endsWith("/pulls");

/** Has a request fail in this way; resolves once it has come. */
function failOnce(fault: Fault, isMeant: (req: ReceivedRequest) => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const when = (req: ReceivedRequest) => {
    if (isMeant(req)) resolve();
    return isMeant(req);
  };
  host.fail(fault, { when });
  return promise;
}
async function restartServer(): Promise<void> {
  const { dataDir, token } = server;
  await server.kill();
  server = { ...(await startServer({ dataDir, args: serverArgs })), token };
}
/** Checks that the one commit was pushed, once, and is answered again and again. */
async function expectPushed(): Promise<void> {
  const { push: known } = await succeeded(push());
  expect(known).toMatchObject({
    commit: origin.find("b"),
    state: "STATE_DONE",
    outcome: "OUTCOME_UNCHANGED",
  });
  expect(origin.messages("b")).toEqual([`Add b\n\nChartroom-Environment: ${environmentId}`, "first"]);
}

describe("a push whose runner is killed", () => {
  test.each<[string, Fault]>([
    ["before the remote has taken it", "hang"],
    ["after the remote has taken it, before it has said so", "unanswered"],
  ])("%s is carried out by the runner's next program", async (_, fault) => {
    const came = failOnce(fault, isPush);
    const pushing = push();
    await came;
    if (fault === "unanswered")
      await until(
        async () => origin.find("b"),
        (commit) => commit !== undefined,
      );
    await runner.kill();
    startRunnerProcess(server, { stateDir: runner.stateDir, args });
    expect((await pushing).body.push).toMatchObject({ state: "STATE_DONE", commit: origin.find("b") });
    await expectPushed();
  });
});

describe("a push whose server is killed", () => {
  test("while the runner pushes is found by the same call, which waits for what the runner goes on with", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const came = failOnce({ until: released }, isPush);
    const pushing = push().catch((error: Error) => error);
    await came;
    await restartServer();
    expect(await pushing).toBeInstanceOf(Error);
    const found = until(push, ({ status, body }) => status === 200 && body.push.state === "STATE_DONE");
    release();
    expect((await found).body.push.commit).toBe(origin.find("b"));
    await expectPushed();
  });

  test("while the host opens the pull request leaves one, which the same call finds and follows", async () => {
    const came = failOnce("unanswered", isOpening);
    const opening = open().catch((error: Error) => error);
    await came;
    await until(
      async () => host.pullRequests().length,
      (count) => count === 1,
    );
    await restartServer();
    expect(await opening).toBeInstanceOf(Error);
    const { body } = await until(open, ({ status }) => status === 200);
    expect(body.pullRequest.pullRequest).toMatchObject({ id: "1", fromBranch: "b", toBranch: "main" });
    expect(host.pullRequests()).toHaveLength(1);
    const { pullRequests } = await call("WorkflowService/ListPullRequests", {
      filter: { environmentIds: [environmentId] },
    });
    expect(pullRequests.map(({ id }: { id: string }) => id)).toEqual([body.pullRequest.id]);
    await expectPushed();
  });
});
