import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { type StartedExecution, startExecution } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

const TOKEN = "token-of-the-administrator";

let server: ReachableServer;
let host: ScmHost;
let member: TestMember;
beforeAll(async () => {
  server = await startHostedServer();
  host = await startScmHost({ kind: "plain", token: TOKEN });
  const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
  member = await addMember(server, { organizationId: body.organizationId, email: "maker@example.org" });
  const args = ["--allow-private-remotes", "--plain-http-hosts", host.host];
  const { runnerId } = await startRegisteredHostedRunner(server, { args });
  const request = { runnerId, host: host.host, token: TOKEN };
  await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", request));
});
afterAll(async () => {
  await stopRunners();
  await Promise.all([stopAll(), host.stop()]);
});

async function over(run: StartedExecution) {
  await until(run.execution, ({ status }) => status.phase === "WORKFLOW_EXECUTION_PHASE_COMPLETED");
  const [action] = await run.actions();
  return action.status;
}

test("an action over a member's private repository fails for an administrator, says who can help, and runs once adopted", async () => {
  const repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  const initializer = {
    specs: [{ git: { remoteUri: host.addRepository("team/private", repository.folder) } }],
  };
  const { project } = await succeeded(
    post(server, "ProjectService/CreateProject", { initializer }, member.token),
  );
  const projectId = project.id;
  const run = await startExecution(server, { context: { projects: { projectIds: [projectId] } } });
  const refused = await over(run);
  expect(refused.failures).toMatchObject([{ reason: "credential_withheld" }]);
  expect(refused.failures[0].message).toContain(member.userId);
  expect(refused.failures[0].message).toContain(
    "administrator can adopt the project's source by setting its initializer again",
  );

  await succeeded(post(server, "ProjectService/UpdateProject", { projectId, initializer }));
  expect((await over(await run.retry())).failures).toEqual([]);
});
