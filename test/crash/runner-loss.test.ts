import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readLog } from "../harness/action-log.ts";
import { addScriptedAgent, closeConversations, startConversation } from "../harness/agent-conversation.ts";
import type { Answer } from "../harness/call.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { withServerData } from "../harness/member.ts";
import { startRegisteredRunner, startRunnerProcess, stopRunners } from "../harness/runner-process.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { startServerProxy } from "../harness/server-proxy.ts";
import { startExecution, task, type WorkflowRunOptions } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

let server: TestServer;
let repository: BareRepository;
beforeAll(async () => {
  server = await startServer({ args: LONG_LEASES });
  repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const start = (run: WorkflowRunOptions, on: TestServer = server) =>
  startExecution(on, { repository: () => repository.url, ...run });
type Started = Awaited<ReturnType<typeof start>>;
const only = async (run: Started): Promise<Answer["body"]> => (await run.actions())[0];
const over = (run: Started) =>
  until(
    () => only(run),
    ({ status }) => /DONE|STOPPED/.test(status.phase),
  );
const lostAttempts = ({ status }: Answer["body"]) =>
  status.warnings
    .filter(({ reason }: { reason: string }) => reason === "attempt_lost")
    .map(({ meta }: { meta: Record<string, string> }) => meta);
const isRunning = (processId: number) => {
  const file = `/proc/${processId}/stat`;
  return existsSync(file) && !/^\d+ \(.*\) Z/.test(readFileSync(file, "utf8"));
};
/** A command that goes on until the file is there, and says its process. */
const waiting = (gate: string) =>
  task(`echo begun $$; while ! [ -e ${gate} ]; do sleep 0.1; done; echo over`);
const begun = async (run: Started, on: TestServer = server): Promise<number> => {
  const { id } = await only(run);
  const log = await readLog(on, id, { until: (text) => /begun \d+\n/.test(text) });
  return Number(/begun (\d+)/.exec(log)?.[1]);
};

test("asked to end, a runner lets short work end and takes no more", async () => {
  const runner = await startRegisteredRunner(server);
  const gate = join(temporaryFolder(), "gate");
  const run = await start({ steps: [waiting(gate)] });
  await begun(run);
  const stopping = runner.stop();
  const later = await start({});
  writeFileSync(gate, "");
  expect(await stopping).toBe(0);
  expect((await over(run)).status).toMatchObject({ failures: [], warnings: [], attempt: 1 });
  expect((await only(later)).status.phase).toBe("WORKFLOW_EXECUTION_ACTION_PHASE_PENDING");
  await later.cancel();
});

test("asked to end, a runner gives longer work back, and another one does it at once", async () => {
  const first = await startRegisteredRunner(server);
  const gate = join(temporaryFolder(), "gate");
  const run = await start({ steps: [waiting(gate)] });
  const processId = await begun(run);
  const ended = await first.stop();
  expect([ended, isRunning(processId)]).toEqual([0, false]);
  await first.untilLogged("work ended", { outcome: "released" });
  expect(readdirSync(join(first.stateDir, "workspaces"))).toEqual([]);
  writeFileSync(gate, "");
  const second = await startRegisteredRunner(server);
  const action = await over(run);
  expect([action.status.failures, action.status.attempt]).toEqual([[], 2]);
  expect(lostAttempts(action)).toEqual([{ runner_id: first.runnerId, attempt: "1" }]);
  await second.stop();
});

test("work of a runner that is killed is done again, visibly, and nothing of it stays", async () => {
  const killed = await startRegisteredRunner(server);
  const gate = join(temporaryFolder(), "gate");
  const run = await start({ steps: [task("true"), waiting(gate)] });
  const { id } = await only(run);
  const log = await readLog(server, id, { stepIndex: 1, until: (text) => /begun \d+\n/.test(text) });
  const processId = Number(/begun (\d+)/.exec(log)?.[1]);
  await killed.kill();
  expect(isRunning(processId)).toBe(true);

  const { stateDir, runnerId } = killed;
  const next = startRunnerProcess(server, { stateDir });
  await next.untilLogged("commands that an earlier runner left behind were ended", { count: 1 });
  expect(isRunning(processId)).toBe(false);
  writeFileSync(gate, "");
  const action = await over(run);
  expect([action.status.failures, action.status.attempt]).toEqual([[], 2]);
  expect(lostAttempts(action)).toEqual([{ runner_id: runnerId, attempt: "1" }]);
  // The folder of the lost attempt is removed by a work of its own.
  await until(
    () => readdirSync(join(stateDir, "workspaces")),
    (names) => names.length === 0,
  );
  await next.stop();
});

test("a runner that is killed goes on with the runs that wait as soon as it is started again", async () => {
  const killed = await startRegisteredRunner(server);
  await addScriptedAgent(server, join(temporaryFolder(), "got"));
  const conversation = await startConversation(server);
  await conversation.say("first", "echo one");
  await conversation.untilOutput("one");
  await conversation.untilIdle();
  await killed.kill();
  const next = startRunnerProcess(server, { stateDir: killed.stateDir });
  await next.untilLogged("work of the runner's earlier program is taken again", { lostLeases: 1 });
  await conversation.say("second", "echo two");
  await conversation.untilOutput("two");
  await conversation.stop();
  closeConversations();
  await next.stop();
});

test("a state folder is locked while a runner works in it", async () => {
  const { stateDir, stop } = await startRegisteredRunner(server);
  const second = startRunnerProcess(server, { stateDir });
  expect(await second.ended).toBe(1);
  expect(second.output()).toContain(`another runner works in ${stateDir}: stop it, or give this one`);
  await stop();
  const third = startRunnerProcess(server, { stateDir });
  await third.untilLogged("the runner takes work");
  await third.stop();
});

test("a copy of a state folder is another instance, which waits for the end of the first", async () => {
  const { stateDir, stop, runnerId } = await startRegisteredRunner(server);
  const copy = join(temporaryFolder(), "copy");
  cpSync(stateDir, copy, { recursive: true });
  const second = startRunnerProcess(server, { stateDir: copy });
  const line = await second.untilLogged(
    "another instance of this runner is running, in another folder or on another machine: stop it, or create another runner for this one; trying again",
  );
  expect(line.level).toBe("warn");
  await stop();
  await withServerData(server, (store) => store.note("runner", runnerId, { instance_seen_at: 0 }));
  await second.untilLogged("the runner takes work");
  await second.stop();
});

test("a runner goes on with its work while its server is restarted", async () => {
  const before = await startServer({ args: LONG_LEASES });
  const proxy = await startServerProxy(before);
  const here = { ...before, url: proxy.url };
  const runner = await startRegisteredRunner(here);
  const gate = join(temporaryFolder(), "gate");
  const run = await start({ steps: [waiting(gate)] }, here);
  const processId = await begun(run, here);
  await before.kill();
  const { dataDir, token } = before;
  const again = await startServer({ dataDir, args: LONG_LEASES });
  proxy.forwardTo(again);
  expect(isRunning(processId)).toBe(true);
  writeFileSync(gate, "");
  const action = await over(run);
  expect([action.status.failures, action.status.warnings, action.status.attempt]).toEqual([[], [], 1]);
  expect(await readLog({ url: again.url, token }, action.id)).toMatch(/^begun \d+\nover\n$/);
  await runner.stop();
  await proxy.stop();
});

test("a runner whose server is away longer than its lease gives its work up", async () => {
  const before = await startServer({ args: ["--lease-duration", "5"] });
  const runner = await startRegisteredRunner(before);
  const run = await start({ steps: [waiting("/nonexistent")] }, before);
  const processId = await begun(run, before);
  await before.kill();
  await runner.untilLogged("work ended", { outcome: "lost" });
  expect(isRunning(processId)).toBe(false);
  expect(readdirSync(join(runner.stateDir, "workspaces"))).toEqual([]);
  await runner.kill();
});

test("the server's own runner gives its work back before the server ends", async () => {
  const args = [...LONG_LEASES, "--local-runner", "--allow-file-remotes"];
  const before = await startServer({ args });
  const gate = join(temporaryFolder(), "gate");
  let url = before.url;
  const here = {
    ...before,
    get url() {
      return url;
    },
  };
  const run = await start({ steps: [waiting(gate)] }, here);
  const processId = await begun(run, before);
  expect([await before.stop(), isRunning(processId)]).toEqual([0, false]);
  expect(before.log().filter(({ level }) => level === "error")).toEqual([]);
  writeFileSync(gate, "");
  ({ url } = await startServer({ dataDir: before.dataDir, args }));
  const action = await over(run);
  expect([action.status.failures, action.status.attempt]).toEqual([[], 2]);
  expect(lostAttempts(action)).toHaveLength(1);
});
