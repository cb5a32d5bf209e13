import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { approvals, decide, onlyPending } from "../harness/approvals.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import {
  type HostedServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { type StartedExecution, startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

const TOKEN = "token-of-the-executor";

let server: HostedServer;
let host: ScmHost;
let plain: ScmHost;
let stateDir: string;
beforeAll(async () => {
  [host, plain] = await Promise.all([
    startScmHost({ kind: "gitea", token: TOKEN }),
    startScmHost({ kind: "plain", token: TOKEN }),
  ]);
  const args = ["--allow-private-remotes", "--plain-http-hosts", `${host.host},${plain.host}`];
  server = await startHostedServer({ args });
  const runner = await startRegisteredHostedRunner(server, { args });
  stateDir = runner.stateDir;
  for (const { host: name } of [host, plain]) {
    const request = { runnerId: runner.runnerId, host: name, token: TOKEN };
    await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", request));
  }
});
afterAll(async () => {
  await stopRunners();
  await Promise.all([stopAll(), host.stop(), plain.stop()]);
});

let count = 0;
/** A repository at a host, with what was made of it. */
function repositoryAt(
  at: ScmHost = host,
): BareRepository & { readonly path: string; readonly cloneUrl: string } {
  count++;
  const repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  repository.git("config", "http.receivepack", "true");
  const path = `team/r${count}`;
  return { ...repository, path, cloneUrl: at.addRepository(path, repository.folder) };
}

const pullRequest = (more: object = {}) => ({
  pullRequest: { title: "Add b", description: "It was missing.", branch: "add-b", ...more },
});
const steps = [task("echo two > b.txt"), pullRequest()];
const start = (cloneUrl: string, of: readonly object[] = steps) =>
  startExecution(server, { repository: () => cloneUrl, steps: of });
/** The status of the one action of an execution, once that is over. */
async function ended(run: StartedExecution): Promise<Answer["body"]> {
  await until(run.execution, ({ status }) => status.phase === "WORKFLOW_EXECUTION_PHASE_COMPLETED");
  return (await run.actions())[0].status;
}
const reasons = (errors: readonly Answer["body"][]) => errors.map(({ reason }) => reason);

/** Sets the organization's rules about pushes. @returns the organization's id */
async function setRules(rules: readonly object[]): Promise<string> {
  const { organizationId } = await succeeded(post(server, "IdentityService/GetAuthenticatedIdentity", {}));
  const request = { organizationId, agentPolicy: { pushRules: { rules } } };
  await succeeded(post(server, "OrganizationService/UpdateOrganizationPolicies", request));
  return organizationId;
}

describe("the organization's rules about pushes", () => {
  afterAll(() => setRules([]));

  test.each([
    ["denies", [{ branches: ["add-*"], effect: "EFFECT_DENY" }], ["push_denied"]],
    [
      "allows before it denies",
      [
        { branches: ["add-b"], effect: "EFFECT_ALLOW" },
        { branches: ["**"], effect: "EFFECT_DENY" },
      ],
      [],
    ],
    ["is about other branches", [{ branches: ["add-*/**", "main"], effect: "EFFECT_DENY" }], []],
  ])("a step whose branch one %s", async (_, rules, expected) => {
    await setRules(rules);
    const repository = repositoryAt();
    const status = await ended(await start(repository.cloneUrl));
    expect(reasons(status.failures)).toEqual(expected);
    expect(repository.find("add-b") === undefined).toBe(expected.length > 0);
  });
});

describe("a rule that asks people before pushes to the branch of a step", () => {
  const ask = { branches: ["add-*"], effect: "EFFECT_ASK" };
  let decider: TestMember;
  beforeAll(async () => {
    const organizationId = await setRules([]);
    decider = await addMember(server, { organizationId, email: "decider@example.org", administrator: true });
    await setRules([ask]);
  });
  afterAll(() => setRules([]));
  const asked = () => onlyPending(server);
  const decideOn = (approval: Answer["body"], decision = "DECISION_APPROVE") =>
    decide({ ...server, token: decider.token }, approval, { decision });

  test.each([
    ["approved", "DECISION_APPROVE", []],
    ["denied", "DECISION_DENY", ["approval_denied"]],
  ])("pushes nothing before exactly that is %s", async (_, decision, expected) => {
    const repository = repositoryAt();
    const run = await start(repository.cloneUrl);
    const approval = await asked();
    expect(repository.find("add-b")).toBeUndefined();
    const request = JSON.parse(approval.requestJson);
    expect(request).toEqual({
      remote: repository.cloneUrl,
      branch: "add-b",
      commit: expect.stringMatching(/^[0-9a-f]{40}$/),
      pullRequest: { title: "Add b", body: "It was missing.", base: "main" },
    });
    await expect(decide(server, approval, { decision })).rejects.toThrow("permission_denied");
    await decideOn(approval, decision);
    const status = await ended(run);
    expect(reasons(status.failures)).toEqual(expected);
    const opened = host.pullRequests().filter((each) => each.repository === repository.path);
    const isPushed = expected.length === 0;
    expect([repository.find("add-b"), opened.length]).toEqual(
      isPushed ? [request.commit, 1] : [undefined, 0],
    );
    const [newest] = await approvals(server);
    expect([newest.id, typeof newest.carriedOutAt]).toEqual([approval.id, isPushed ? "string" : "undefined"]);
    const access = { CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token };
    const { stdout } = await runHostedCommand(["approval", "show", approval.id], access);
    const at = String(newest.carriedOutAt).slice(0, 19).replace("T", " ");
    expect(/^carried out +(.+)$/m.exec(stdout)?.[1]).toBe(isPushed ? at : undefined);
  });

  test("does not take a commit for approved that was made after the approval", async () => {
    const repository = repositoryAt();
    const run = await start(repository.cloneUrl);
    const first = await asked();
    const [{ status: waiting }] = await run.actions();
    const tree = join(stateDir, "workspaces", waiting.environmentId, "tree");
    writeFileSync(join(tree, readdirSync(tree)[0] ?? "", "c.txt"), "three\n");
    await decideOn(first);
    const second = await asked();
    expect(repository.find("add-b")).toBeUndefined();
    await decideOn(second);
    expect(reasons((await ended(run)).failures)).toEqual([]);
    expect(repository.find("add-b")).toBe(JSON.parse(second.requestJson).commit);
    expect(repository.git("ls-tree", "--name-only", "add-b").split("\n")).toEqual([
      "a.txt",
      "b.txt",
      "c.txt",
    ]);
  });

  test("is asked of a remote without pull requests, for the branch alone", async () => {
    const repository = repositoryAt(plain);
    const run = await start(repository.cloneUrl);
    const { requestJson, ...approval } = await asked();
    expect(JSON.parse(requestJson)).not.toHaveProperty("pullRequest");
    await decideOn(approval);
    expect(reasons((await ended(run)).warnings)).toEqual(["pull_requests_unsupported"]);
    expect(repository.find("add-b")).toBe(JSON.parse(requestJson).commit);
  });

  test("asks nobody for what reads differently from how it is written", async () => {
    const { cloneUrl } = repositoryAt();
    const deceptive = [steps[0] ?? {}, pullRequest({ title: "\u202eb" })];
    const status = await ended(await start(cloneUrl, deceptive));
    expect(reasons(status.failures)).toEqual(["text_deceptive"]);
    expect(await approvals(server, "APPROVAL_STATE_PENDING")).toEqual([]);
  });
});
