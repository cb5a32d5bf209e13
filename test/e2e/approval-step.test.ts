import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { readLog } from "../harness/action-log.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import {
  startHostedRunner,
  startRegisteredHostedRunner,
  startRegisteredRunner,
  stopRunners,
} from "../harness/runner-process.ts";
import {
  runHostedCommand,
  startHostedServer,
  startServer,
  stopAll,
  type TestServer,
  temporaryFolder,
} from "../harness/server.ts";
import { startServerProxy } from "../harness/server-proxy.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

let repository: BareRepository;
beforeAll(() => {
  repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
});
afterEach(stopRunners);
afterAll(stopAll);

type Place = Pick<TestServer, "url" | "token">;
type Run = Awaited<ReturnType<typeof startExecution>>;

const STEPS = [
  task("echo made > made.txt"),
  { approval: { message: "Deploy it?" } },
  task("cat a.txt made.txt"),
];
const start = (server: Place, steps: readonly object[] = STEPS): Promise<Run> =>
  startExecution(server, { repository: () => repository.url, steps });
const only = async (run: Run): Promise<Answer["body"]> => (await run.actions())[0];
const phases = ({ status }: Answer["body"]) =>
  status.stepStatuses.map(({ phase }: { phase: string }) => phase.replace("STEP_PHASE_", "")).join(" ");
const ended = (run: Run) =>
  until(
    () => only(run),
    ({ status }) => /DONE|STOPPED/.test(status.phase),
  );
const chartroom = (server: Place, ...args: readonly string[]) =>
  runHostedCommand(args, {
    XDG_CONFIG_HOME: temporaryFolder(),
    CHARTROOM_SERVER: server.url,
    CHARTROOM_TOKEN: server.token,
  });
/** What an execution waits for, once there is exactly one. */
async function waitsFor(server: Place, { executionId }: Run): Promise<Answer["body"]> {
  const list = async (): Promise<Answer["body"][]> => {
    const args = ["approval", "list", "--json", "--workflow-execution", executionId];
    const { code, stdout, stderr } = await chartroom(server, ...args);
    expect([code, stderr]).toEqual([0, ""]);
    return JSON.parse(stdout);
  };
  const [approval] = await until(list, (all) => all.length === 1);
  return approval;
}
async function decide(server: Place, verb: "approve" | "deny", { id, digest }: Answer["body"]) {
  const { code, stderr } = await chartroom(
    server,
    "approval",
    verb,
    id,
    "--digest",
    digest,
    "--reason",
    "so",
  );
  expect([code, stderr]).toEqual([0, ""]);
}
const workspaces = (stateDir: string) => readdirSync(join(stateDir, "workspaces"));
const untilNoWorkspace = (stateDir: string) =>
  until(
    () => workspaces(stateDir),
    (names) => names.length === 0,
  );

test("an action waits for people without the runner's slot, and goes on with its files", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  const { stateDir } = await startRegisteredHostedRunner(server, { args: ["--slots", "1"] });
  const run = await start(server);
  const approval = await waitsFor(server, run);
  const { stdout } = await chartroom(server, "approval", "show", approval.id);
  expect(stdout).toMatch(/^kind +step$/m);
  expect(stdout).toContain('"message": "Deploy it?"');
  const waiting = await only(run);
  expect([waiting.status.phase, phases(waiting)]).toEqual([
    "WORKFLOW_EXECUTION_ACTION_PHASE_PENDING",
    "DONE RUNNING PENDING",
  ]);
  // The runner's only slot is free meanwhile.
  expect(phases(await ended(await start(server, [task("true")])))).toBe("DONE");
  expect(workspaces(stateDir)).toEqual([waiting.status.environmentId]);
  await decide(server, "approve", approval);
  const done = await ended(run);
  expect(phases(done)).toBe("DONE DONE DONE");
  expect(await readLog(server, done.id, { stepIndex: 2 })).toBe("one\nmade\n");
  expect(done.status).toMatchObject({ attempt: 1, failures: [], warnings: [] });
  await untilNoWorkspace(stateDir);
});

test("files of secrets leave the runner while an action waits, and come back with its next lease", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  const { stateDir } = await startRegisteredHostedRunner(server);
  const call = (operation: string, body: object) => succeeded(post(server, operation, body));
  const { organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {});
  const secret = { name: "KEY", value: "a secret value", filePath: "/key", scope: { organizationId } };
  await call("SecretService/CreateSecret", secret);
  const telling = task('wc -c < "$CHARTROOM_SECRETS/key"');
  const run = await start(server, [telling, { approval: { message: "Go on?" } }, telling]);
  const approval = await waitsFor(server, run);
  const { id, status } = await only(run);
  expect(existsSync(join(stateDir, "workspaces", status.environmentId, "tree"))).toBe(true);
  expect(existsSync(join(stateDir, "workspaces", status.environmentId, "secrets"))).toBe(false);
  await decide(server, "approve", approval);
  expect(phases(await ended(run))).toBe("DONE DONE DONE");
  for (const stepIndex of [0, 2]) expect((await readLog(server, id, { stepIndex })).trim()).toBe("14");
});

test("a denial, and a stop, leave no files with the runner", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  const { stateDir } = await startRegisteredHostedRunner(server);
  const denied = await start(server);
  await decide(server, "deny", await waitsFor(server, denied));
  const { status } = await ended(denied);
  expect(status.failures[0]).toMatchObject({
    reason: "approval_denied",
    message: "the step was not approved: so",
  });
  await untilNoWorkspace(stateDir);
  const stopped = await start(server);
  const approval = await waitsFor(server, stopped);
  await stopped.cancel();
  expect((await ended(stopped)).status.phase).toBe("WORKFLOW_EXECUTION_ACTION_PHASE_STOPPED");
  const { code, stderr } = await chartroom(server, "approval", "approve", approval.id);
  expect([code, stderr]).toEqual([
    1,
    "chartroom: the approval is CANCELLED: there is nothing left to decide\n",
  ]);
  await untilNoWorkspace(stateDir);
});

test("server and runner that are killed while an action waits, and after the decision, lose nothing", async () => {
  const first = await startServer({ args: LONG_LEASES });
  const { token } = first;
  const proxy = await startServerProxy(first);
  const runner = await startRegisteredRunner({ ...first, url: proxy.url });
  const run = await start({ url: proxy.url, token });
  const asked = await waitsFor(first, run);
  await runner.kill();
  await first.kill();
  const second = { ...(await startServer({ dataDir: first.dataDir, args: LONG_LEASES })), token };
  expect((await waitsFor(second, run)).id).toBe(asked.id);
  await decide(second, "approve", asked);
  await second.kill();
  const third = { ...(await startHostedServer({ dataDir: first.dataDir, args: LONG_LEASES })), token };
  proxy.forwardTo(third);
  const { stateDir } = runner;
  await startHostedRunner({ ...third, url: proxy.url }, { stateDir });
  const done = await ended(run);
  expect(phases(done)).toBe("DONE DONE DONE");
  expect(await readLog(third, done.id, { stepIndex: 2 })).toBe("one\nmade\n");
  expect(done.status).toMatchObject({ attempt: 1, failures: [], warnings: [] });
  await untilNoWorkspace(stateDir);
  await proxy.stop();
});

test("a server that is killed while the runner lets go of the action asks once it is back", async () => {
  const first = await startServer({ args: LONG_LEASES });
  const { token } = first;
  const proxy = await startServerProxy(first);
  const gate = join(temporaryFolder(), "gate");
  const { stateDir } = await startRegisteredHostedRunner({ ...first, url: proxy.url });
  const run = await start({ url: proxy.url, token }, [
    task(`echo begun; while ! [ -e ${gate} ]; do sleep 0.1; done; echo made > made.txt`),
    { approval: { message: "Deploy it?" } },
    task("cat made.txt"),
  ]);
  const { id } = await only(run);
  await readLog(first, id, { until: (text) => text.includes("begun") });
  await first.kill();
  writeFileSync(gate, "");
  const second = { ...(await startServer({ dataDir: first.dataDir, args: LONG_LEASES })), token };
  proxy.forwardTo(second);
  await decide(second, "approve", await waitsFor(second, run));
  const done = await ended(run);
  expect(phases(done)).toBe("DONE DONE DONE");
  expect(done.status).toMatchObject({ attempt: 1, failures: [], warnings: [] });
  await untilNoWorkspace(stateDir);
  await proxy.stop();
});

test("a runner that is lost after the approval begins again, and asks nobody again", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  const gate = join(temporaryFolder(), "gate");
  const { kill, stateDir } = await startRegisteredRunner(server);
  const run = await start(server, [
    task("echo made > made.txt"),
    { approval: { message: "Deploy it?" } },
    task(`echo begun; [ -e ${gate} ] || { touch ${gate}; sleep 600; }; cat made.txt`),
  ]);
  await decide(server, "approve", await waitsFor(server, run));
  const { id } = await only(run);
  await readLog(server, id, { stepIndex: 2, until: (text) => text.includes("begun") });
  await kill();
  await expireAllLeases(server);
  await startHostedRunner(server, { stateDir });
  const done = await ended(run);
  expect(phases(done)).toBe("DONE DONE DONE");
  expect([done.status.attempt, done.status.failures]).toEqual([2, []]);
  const args = ["approval", "list", "--all", "--json", "--workflow-execution", run.executionId];
  expect(JSON.parse((await chartroom(server, ...args)).stdout)).toHaveLength(1);
  await untilNoWorkspace(stateDir);
});
