import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { addMember } from "../harness/member.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: TestServer;
let origin: BareRepository;
let organizationId: string;
let run: string;
/** The folder of the run's repository. */
let tree: string;
beforeAll(async () => {
  server = await startServer();
  const added = ["--command", JSON.stringify(["sh"]), "--form", "text", "--default"];
  const { code, stderr } = await runCommand([
    "agent",
    "add",
    "writer",
    ...added,
    "--data-dir",
    server.dataDir,
  ]);
  if (code !== 0) throw new Error(stderr);
  const { stateDir } = await startRegisteredRunner(server);
  ({ organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {}));
  origin = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  const spec = { content: { initializer: repository(origin.url) } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Pushed", spec });
  const environmentId: string = environment.id;
  const request = { name: "Fix: the Parser!", codeContext: { environmentId } };
  run = (await call("AgentService/StartAgent", request)).agentExecutionId;
  await until(
    () => call("EnvironmentService/GetEnvironment", { environmentId }),
    (body) => body.environment.status.phase === "ENVIRONMENT_PHASE_RUNNING",
  );
  tree = join(stateDir, "workspaces", environmentId, "tree/hello");
  await until(
    () => chartroom("run", "push", run),
    ({ stderr }) => stderr.includes("nothing has changed"),
  );
  writeFileSync(join(tree, "b.txt"), "two\n");
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const call = (operation: string, body: object, token = server.token) =>
  succeeded(post(server, operation, body, token));
const chartroom = (...args: readonly string[]) =>
  runCommand(args, {
    XDG_CONFIG_HOME: temporaryFolder(),
    CHARTROOM_SERVER: server.url,
    CHARTROOM_TOKEN: server.token,
  });

test("chartroom run push says what is not committed, commits it where it is asked to, and finds it again", async () => {
  const refused = await chartroom("run", "push", run);
  expect([refused.code, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toMatch(/^chartroom: nothing was done: the repository has changes .* not committed/);
  expect(refused.stderr).toMatch(/: --commit-message TEXT commits them, with you as the author\n$/);
  const branch = `chartroom/fix-the-parser-${run.slice(-8)}`;
  const created = await chartroom("run", "push", run, "--commit-message", "Add b");
  const commit = origin.find(branch);
  expect(created).toMatchObject({
    code: 0,
    stderr: "",
    stdout: `created ${branch} of ${origin.url} at ${commit}\n`,
  });
  const again = await chartroom("run", "push", run, "--commit-message", "Add b", "--json");
  expect(JSON.parse(again.stdout)).toMatchObject({ push: { commit, outcome: "OUTCOME_UNCHANGED" } });
});

test("chartroom run pr says where the remote knows none", async () => {
  const { code, stderr } = await chartroom("run", "pr", run, "--commit-message", "Add b", "--title", "Add b");
  expect([code, stderr]).toEqual([
    1,
    "chartroom: nothing was done: the remote knows no pull requests: push the branch alone, and open one elsewhere\n",
  ]);
});

test("chartroom run push ends with 3 where people are asked first, and is done once they have approved", async () => {
  const other = await addMember(server, { organizationId, email: "o@example.org", administrator: true });
  const pushRules = { rules: [{ branches: ["ask"], effect: "EFFECT_ASK" }] };
  await call("OrganizationService/UpdateOrganizationPolicies", {
    organizationId,
    agentPolicy: { pushRules },
  });
  const push = ["run", "push", run, "--branch", "ask", "--commit-message", "Add b"];
  const waiting = await chartroom(...push);
  expect([waiting.code, waiting.stderr]).toEqual([3, ""]);
  const approvalId = /waits for the approval (\S+)\n/.exec(waiting.stdout)?.[1] ?? "";
  const following = chartroom(...push, "--wait");
  const { approval } = await call("ApprovalService/GetApproval", { approvalId });
  const decision = { approvalId, digest: approval.digest, decision: "DECISION_APPROVE" };
  await call("ApprovalService/DecideApproval", decision, other.token);
  expect(await following).toMatchObject({ code: 0, stderr: "" });
  expect(origin.messages("ask")[0]).toContain("Add b");
});
