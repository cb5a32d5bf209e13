import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { freePort } from "../harness/free-port.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import {
  type RunnerProcess,
  startRegisteredRunner,
  startRunnerProcess,
  stopRunners,
} from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { type StartedExecution, startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

const TOKEN = "token-of-the-executor";
// A second attempt has another environment, and so another commit.
const STEPS = [
  task('echo "$CHARTROOM_ENVIRONMENT_ID" > b.txt'),
  { pullRequest: { title: "Add b", description: "It was missing.", branch: "add-b" } },
];

let server: TestServer;
let host: ScmHost;
let origin: BareRepository;
let runner: RunnerProcess;
let decider: TestMember;
let args: string[];
let serverArgs: string[];
let run: StartedExecution;

beforeEach(async () => {
  host = await startScmHost({ kind: "github", token: TOKEN });
  args = ["--allow-private-remotes", "--plain-http-hosts", host.host];
  serverArgs = [...args, ...LONG_LEASES, "--port", String(await freePort())];
  server = await startServer({ args: serverArgs });
  const registered = await startRegisteredRunner(server, { args });
  runner = registered;
  const credential = { runnerId: registered.runnerId, host: host.host, token: TOKEN };
  await call("RunnerConfigurationService/CreateHostAuthenticationToken", credential);
  const { organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {});
  decider = await addMember(server, { organizationId, email: "decider@example.org", administrator: true });
  const rules = [{ branches: ["add-*"], effect: "EFFECT_ASK" }];
  const policies = { organizationId, agentPolicy: { pushRules: { rules } } };
  await call("OrganizationService/UpdateOrganizationPolicies", policies);
  origin = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  origin.git("config", "http.receivepack", "true");
  const url = host.addRepository("team/hello", origin.folder);
  run = await startExecution(server, { repository: () => url, steps: STEPS });
});
afterEach(async () => {
  await stopRunners();
  await Promise.all([server.stop(), host.stop()]);
});
afterAll(stopAll);

const call = (operation: string, body: object): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body));
const asked = async (): Promise<Answer["body"][]> => {
  const filter = { workflowExecutionIds: [run.executionId] };
  return (await call("ApprovalService/ListApprovals", { filter })).approvals;
};
/** What the step waits for, as the newest of so many that it has asked for. */
async function pending(count: number): Promise<Answer["body"]> {
  const [newest] = await until(
    asked,
    (all) => all.length === count && all[0].state === "APPROVAL_STATE_PENDING",
  );
  return newest;
}
const approve = ({ id: approvalId, digest }: Answer["body"]) => {
  const decision = { approvalId, digest, decision: "DECISION_APPROVE" };
  return succeeded(post(server, "ApprovalService/DecideApproval", decision, decider.token));
};
const commitOf = ({ requestJson }: Answer["body"]): string => JSON.parse(requestJson).commit;
async function restartServer(): Promise<void> {
  const { dataDir, token } = server;
  await server.kill();
  server = { ...(await startServer({ dataDir, args: serverArgs })), token };
}
async function restartRunner(): Promise<void> {
  await runner.kill();
  await expireAllLeases(server);
  runner = startRunnerProcess(server, { stateDir: runner.stateDir, args });
}
/** Checks that exactly what was approved last was pushed, and has one pull request. */
async function expectCarriedOut(attempt: number): Promise<void> {
  const phase = "WORKFLOW_EXECUTION_PHASE_COMPLETED";
  await until(run.execution, ({ status }) => status.phase === phase);
  const [{ status }] = await run.actions();
  expect([status.failures, status.attempt]).toEqual([[], attempt]);
  const [newest, ...earlier] = await asked();
  expect(origin.find("add-b")).toBe(commitOf(newest));
  expect(origin.git("log", "--format=%s", "main..add-b").split("\n")).toEqual(["Add b"]);
  expect(host.pullRequests()).toHaveLength(1);
  expect([newest, ...earlier].map(({ carriedOutAt }) => typeof carriedOutAt)).toEqual([
    "string",
    ...earlier.map(() => "undefined"),
  ]);
}

test("server and runner that are killed while people decide on a push, and after that, lose and double nothing", async () => {
  const waiting = await pending(1);
  await restartServer();
  await restartRunner();
  expect((await pending(1)).id).toBe(waiting.id);
  await runner.kill();
  await approve(waiting);
  await restartServer();
  expect(origin.find("add-b")).toBeUndefined();
  runner = startRunnerProcess(server, { stateDir: runner.stateDir, args });
  await expectCarriedOut(1);
  expect(await asked()).toHaveLength(1);
});

test("a runner that is killed after the push leaves a branch and a pull request that the next attempt asks for and finds", async () => {
  const isOpening = (method: string, target: string) => method === "POST" && target.endsWith("/pulls");
  host.fail("unanswered", { when: ({ method, target }) => isOpening(method, target) });
  const first = await pending(1);
  await approve(first);
  await until(
    async () => host.pullRequests().length,
    (count) => count === 1,
  );
  expect(origin.find("add-b")).toBe(commitOf(first));
  await restartRunner();
  const second = await pending(2);
  expect(commitOf(second)).not.toBe(commitOf(first));
  // Nothing else has come to the remote meanwhile.
  expect(origin.find("add-b")).toBe(commitOf(first));
  await approve(second);
  await expectCarriedOut(2);
});
