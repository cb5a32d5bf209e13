import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { type Answer, post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { expireAllLeases } from "../harness/lease.ts";
import {
  startHostedRunner,
  startRegisteredHostedRunner,
  startRegisteredRunner,
  stopRunners,
} from "../harness/runner-process.ts";
import {
  type HostedServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

const WRITER = `words=$(cat); echo "$words" >> notes.txt
for gate in $words; do case "$gate" in */gate*)
  until [ -e "$gate" ]; do sleep 0.1; done; echo "after \${gate##*/}" >> notes.txt;;
esac; done`;

let server: HostedServer;
let origin: BareRepository;
beforeAll(async () => {
  server = await startHostedServer();
  origin = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  // An agent of plain text, which adds its input to a file, and goes on writing where the input names gates.
  const command = JSON.stringify(["sh", "-c", WRITER]);
  const options = ["--command", command, "--form", "text", "--default", "--data-dir", server.dataDir];
  const { code, stderr } = await runHostedCommand(["agent", "add", "writer", ...options]);
  if (code !== 0) throw new Error(stderr);
});
afterEach(stopRunners);
afterAll(stopAll);

const call = (operation: string, body: object) => succeeded(post(server, operation, body));
const changesOf = async (environmentId: string): Promise<Answer["body"] | undefined> =>
  (await post(server, "EnvironmentService/GetEnvironmentChanges", { environmentId })).body.changes;
const diffOf = async (environmentId: string, base = "DIFF_BASE_ENVIRONMENT") =>
  (await call("EnvironmentService/GetEnvironmentDiff", { environmentId, base })).files;

test("the changes of a run grow with each turn, past the loss of its runner, and outlive its environment", async () => {
  const runner = await startRegisteredRunner(server);
  const { stateDir } = runner;
  const spec = { content: { initializer: repository(origin.url) } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Shown", spec });
  const environmentId: string = environment.id;
  const { agentExecutionId } = await call("AgentService/StartAgent", { codeContext: { environmentId } });
  const say = (content: string) =>
    call("AgentService/SendToAgentExecution", {
      agentExecutionId,
      userInput: { id: content, inputs: [{ text: { content } }] },
    });
  const untilLines = (count: number) =>
    until(
      () => changesOf(environmentId),
      (changes) => changes?.counts.addedLines === String(count),
    );
  await say("first");
  const first = await untilLines(1);
  expect(first.repositories).toMatchObject([
    { folder: "hello", branch: "main", baseCommit: origin.find("main"), commitsAhead: 0, problem: "" },
  ]);
  const [file] = await diffOf(environmentId);
  expect(file).toMatchObject({
    path: "hello/notes.txt",
    kind: "KIND_ADDED",
    patch: "@@ -0,0 +1 @@\n+first\n",
  });
  await runner.kill();
  await expireAllLeases(server);
  await startHostedRunner(server, { stateDir });
  await say("second");
  const second = await untilLines(2);
  expect(second.digest).not.toBe(first.digest);
  expect((await diffOf(environmentId))[0].patch).toBe("@@ -0,0 +1,2 @@\n+first\n+second\n");
  expect((await diffOf(environmentId, "DIFF_BASE_LAST_TURN"))[0].patch).toBe(
    "@@ -1 +1,2 @@\n first\n+second\n",
  );
  const env = {
    CHARTROOM_SERVER: server.url,
    CHARTROOM_TOKEN: server.token,
    XDG_CONFIG_HOME: temporaryFolder(),
  };
  const chartroom = (...args: string[]) => runHostedCommand(["run", ...args], env);
  const head = "diff --git a/hello/notes.txt b/hello/notes.txt\n";
  const added =
    "new file mode 100644\n--- /dev/null\n+++ b/hello/notes.txt\n@@ -0,0 +1,2 @@\n+first\n+second\n";
  const ofBase = { code: 0, stdout: `${head}${added}` };
  expect(await chartroom("diff", agentExecutionId)).toMatchObject(ofBase);
  expect(await chartroom("diff", agentExecutionId, "--refresh")).toMatchObject(ofBase);
  const commit = origin.find("main") ?? "";
  expect(await chartroom("diff", agentExecutionId, "--commit", commit)).toMatchObject(ofBase);
  expect((await chartroom("diff", agentExecutionId, "--last-turn")).stdout).toBe(
    `${head}--- a/hello/notes.txt\n+++ b/hello/notes.txt\n@@ -1 +1,2 @@\n first\n+second\n`,
  );
  expect((await chartroom("files", agentExecutionId, "hello")).stdout).toMatch(/^13 .* notes\.txt$/m);
  const content = await chartroom("files", agentExecutionId, "hello/notes.txt", "--content");
  expect(content.stdout).toBe("first\nsecond\n");
  expect((await chartroom("files", agentExecutionId, "hello/.git")).code).not.toBe(0);
  await call("AgentService/StopAgentExecution", { agentExecutionId });
  await call("EnvironmentService/DeleteEnvironment", { environmentId, force: true });
  expect(await diffOf(environmentId)).toMatchObject([{ path: "hello/notes.txt", addedLines: "2" }]);
  // Where the runner cannot look, what it reported last is shown, with the reason.
  for (const looks of [["--refresh"], ["--commit", commit.slice(0, 12).toUpperCase()]]) {
    const { code, stdout, stderr } = await chartroom("diff", agentExecutionId, ...looks);
    expect([looks, code, stdout]).toEqual([looks, 1, ofBase.stdout]);
    expect(stderr).toMatch(
      /^chartroom: this is the diff as it was reported at .* UTC: .*the environment is not there/,
    );
  }
  expect(await chartroom("diff", agentExecutionId, "--commit", "0".repeat(40))).toMatchObject({ stdout: "" });
  const { agentExecution } = await call("AgentService/GetAgentExecution", { agentExecutionId });
  expect(agentExecution.status.outputs).toMatchObject({
    added_files: { intValue: "1" },
    added_lines: { intValue: "2" },
    branch: { stringValue: "main" },
    changes_digest: { stringValue: second.digest },
  });
});

test("the diff of a run grows while the run is still writing", async () => {
  await startRegisteredHostedRunner(server);
  const spec = { content: { initializer: repository(origin.url) } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Grown", spec });
  const environmentId: string = environment.id;
  const { agentExecutionId } = await call("AgentService/StartAgent", { codeContext: { environmentId } });
  const gates = temporaryFolder();
  const content = `${gates}/gate1 ${gates}/gate2`;
  const userInput = { id: "write", inputs: [{ text: { content } }] };
  await call("AgentService/SendToAgentExecution", { agentExecutionId, userInput });
  const untilPatch = (patch: string) =>
    until(
      async () => {
        const body = { environmentId, refresh: true };
        const looked = await post(server, "EnvironmentService/GetEnvironmentChanges", body);
        return looked.status === 200
          ? { changes: looked.body.changes, files: await diffOf(environmentId) }
          : undefined;
      },
      (seen) => seen?.files[0]?.patch === patch,
    );
  const phase = async () =>
    (await call("AgentService/GetAgentExecution", { agentExecutionId })).agentExecution.status.phase;
  const first = await untilPatch(`@@ -0,0 +1 @@\n+${content}\n`);
  expect(await phase()).toBe("PHASE_RUNNING");
  writeFileSync(join(gates, "gate1"), "");
  const second = await untilPatch(`@@ -0,0 +1,2 @@\n+${content}\n+after gate1\n`);
  expect(await phase()).toBe("PHASE_RUNNING");
  expect(second?.changes.digest).not.toBe(first?.changes.digest);
  writeFileSync(join(gates, "gate2"), "");
  const last = await until(
    () => changesOf(environmentId),
    (changes) => changes?.counts.addedLines === "3",
  );
  expect(last.digest).not.toBe(second?.changes.digest);
  await call("AgentService/StopAgentExecution", { agentExecutionId });
});

test("the changes of an action are those of its steps, and stay when its environment is gone", async () => {
  await startRegisteredHostedRunner(server);
  const run = await startExecution(server, {
    repository: () => origin.url,
    steps: [task("echo two > b.txt"), task("git checkout --quiet -b fix; rm a.txt")],
  });
  await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
  const [action] = await run.actions();
  const changes = await changesOf(action.status.environmentId);
  expect(changes?.repositories).toMatchObject([
    { folder: "hello", branch: "fix", counts: { addedFiles: 1, deletedFiles: 1 } },
  ]);
  expect(await diffOf(changes?.environmentId)).toMatchObject([
    { path: "hello/a.txt", kind: "KIND_DELETED", patch: "@@ -1 +0,0 @@\n-one\n" },
    { path: "hello/b.txt", kind: "KIND_ADDED", patch: "@@ -0,0 +1 @@\n+two\n" },
  ]);
});
