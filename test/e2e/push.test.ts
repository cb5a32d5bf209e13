import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { maliciousRepository, ODD_NAME } from "../harness/malicious-repository.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type RunnerProcess, startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReceivedRequest, type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { runCommand, startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

const TOKEN = "token-of-the-caller";

let server: TestServer;
let runner: RunnerProcess & { readonly runnerId: string };
let hosts: Readonly<Record<"github" | "gitlab" | "gitea" | "plain", ScmHost>>;
let organizationId: string;
/** A second administrator, without a credential. */
let other: TestMember;
/** A member with a credential. */
let member: TestMember;

beforeAll(async () => {
  const [github, gitlab, gitea, plain] = await Promise.all([
    startScmHost({ kind: "github", token: TOKEN }),
    startScmHost({ kind: "gitlab", token: TOKEN }),
    startScmHost({ kind: "gitea", token: TOKEN }),
    startScmHost({ kind: "plain", token: TOKEN }),
  ]);
  hosts = { github, gitlab, gitea, plain };
  const names = Object.values(hosts).map(({ host }) => host);
  const args = ["--allow-private-remotes", "--plain-http-hosts", names.join(",")];
  server = await startServer({ args });
  // An agent that runs its input as a script.
  const command = JSON.stringify(["sh"]);
  const added = ["--command", command, "--form", "text", "--default", "--data-dir", server.dataDir];
  const { code, stderr } = await runCommand(["agent", "add", "writer", ...added]);
  if (code !== 0) throw new Error(stderr);
  runner = await startRegisteredRunner(server, { args });
  ({ organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {}));
  other = await addMember(server, { organizationId, email: "other@example.org", administrator: true });
  member = await addMember(server, { organizationId, email: "member@example.org" });
  for (const token of [server.token, member.token]) for (const host of names) await credential(host, token);
});
beforeEach(() => setRules([]));
afterAll(async () => {
  await stopRunners();
  await Promise.all([stopAll(), ...Object.values(hosts).map((host) => host.stop())]);
});

const call = (operation: string, body: object, token = server.token): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body, token));
const credential = (host: string, token?: string) =>
  call(
    "RunnerConfigurationService/CreateHostAuthenticationToken",
    { runnerId: runner.runnerId, host, token: TOKEN, source: "HOST_AUTHENTICATION_TOKEN_SOURCE_PAT" },
    token,
  );
const setRules = (rules: readonly object[]) =>
  call("OrganizationService/UpdateOrganizationPolicies", {
    organizationId,
    agentPolicy: { pushRules: { rules } },
  });
const pushed = (body: object, token?: string) =>
  post(server, "EnvironmentService/PushEnvironmentBranch", body, token);
const opened = (body: object, token?: string) =>
  post(server, "EnvironmentService/OpenPullRequest", body, token);
const causeOf = ({ body }: Answer) =>
  body.details?.find(({ type }: { type: string }) => type === "service.v1.ErrorDetail")?.debug?.metadata
    ?.cause;

let count = 0;
interface Run {
  readonly origin: BareRepository;
  readonly path: string;
  readonly environmentId: string;
  readonly agentExecutionId: string;
  /** Has the agent run a script in the repository. */
  does(script: string): Promise<void>;
}

/** A run in a new environment over a repository at a host. */
async function runAt(host: ScmHost, { token = server.token, name = "Add b" } = {}): Promise<Run> {
  count++;
  const folder = temporaryFolder();
  const origin = bareRepository(folder, { "a.txt": "one\n" }, "hello.git");
  origin.git("config", "http.receivepack", "true");
  const path = `team/r${count}`;
  const spec = { content: { initializer: repository(host.addRepository(path, origin.folder)) } };
  const made = await call("EnvironmentService/CreateEnvironment", { name: "Pushed", spec }, token);
  const environmentId: string = made.environment.id;
  const started = await call("AgentService/StartAgent", { name, codeContext: { environmentId } }, token);
  const { agentExecutionId } = started;
  let turns = 0;
  return {
    origin,
    path,
    environmentId,
    agentExecutionId,
    async does(script) {
      turns++;
      const content = `${script}\necho "tu""rn ${turns}"`;
      const userInput = { id: String(turns), inputs: [{ text: { content } }] };
      await call("AgentService/SendToAgentExecution", { agentExecutionId, userInput }, token);
      await until(
        () => call("AgentService/ListAgentOutputBlocks", { agentExecutionId }, token),
        (body) => JSON.stringify(body).includes(`turn ${turns}`),
      );
    },
  };
}
const COMMIT =
  "echo two > b.txt && git add . && git -c user.name=a -c user.email=a@example.org commit -qm 'Add b'";

describe.each(["github", "gitlab", "gitea"] as const)("at a host with the API of %s", (kind) => {
  test("a run is pushed, a pull request is opened and followed, and each is done once", async () => {
    const host = hosts[kind];
    const run = await runAt(host);
    await run.does(COMMIT);
    const { environmentId, agentExecutionId } = run;
    const first = await succeeded(pushed({ environmentId }));
    const branch = `chartroom/add-b-${agentExecutionId.slice(-8)}`;
    const commit = run.origin.find(branch);
    expect(first.push).toMatchObject({
      environmentId,
      remote: `${host.url}/${run.path}.git`,
      branch,
      commit,
      state: "STATE_DONE",
      outcome: "OUTCOME_CREATED",
      approvalId: "",
    });
    expect((await succeeded(pushed({ environmentId }))).push).toMatchObject({
      commit,
      outcome: "OUTCOME_UNCHANGED",
    });
    const wanted = { environmentId, title: "Add b", body: "It was missing.", draft: true };
    const isOpening = ({ method, target }: ReceivedRequest) =>
      method === "POST" && /\/(pulls|merge_requests)$/.test(target);
    host.fail({ status: 502 }, { when: isOpening });
    const failed = await opened(wanted);
    expect(causeOf(failed)).toBe("scm_unavailable");
    expect(failed.body.message).toMatch(/^the branch is pushed, and no pull request is known to be open/);
    const one = await succeeded(opened(wanted));
    const two = await succeeded(opened(wanted));
    expect(two.pullRequest.id).toBe(one.pullRequest.id);
    const there = host.pullRequests().filter((each) => each.repository === run.path);
    expect(there).toMatchObject([{ branch, base: "main", draft: true, description: "It was missing." }]);
    const filter = { agentExecutionIds: [agentExecutionId] };
    const { pullRequests } = await until(
      () => call("WorkflowService/ListPullRequests", { filter }),
      (body) => body.pullRequests[0]?.seenAt != null,
    );
    expect(pullRequests).toMatchObject([
      {
        id: one.pullRequest.id,
        environmentId,
        agentExecutionId,
        workflowExecutionId: "",
        pullRequest: { id: "1", url: there[0]?.url, fromBranch: branch, toBranch: "main" },
        checks: "PULL_REQUEST_CHECKS_NONE",
        following: "PULL_REQUEST_FOLLOWING_ACTIVE",
        problem: "",
      },
    ]);
  });
});

describe("what is not committed", () => {
  test("is refused, or committed in the caller's name where there is a message", async () => {
    const run = await runAt(hosts.plain);
    await run.does("echo two > b.txt");
    const { environmentId } = run;
    const refused = await pushed({ environmentId });
    expect([refused.status, reasonOf(refused), causeOf(refused)]).toEqual([
      400,
      "PUSH_REFUSED",
      "uncommitted_changes",
    ]);
    const { push } = await succeeded(pushed({ environmentId, branch: "b", commitMessage: "Add b" }));
    expect(push).toMatchObject({ commit: run.origin.find("b"), outcome: "OUTCOME_CREATED" });
    expect(run.origin.messages("b")[0]).toBe(`Add b\n\nChartroom-Environment: ${environmentId}`);
    const none = await opened({ environmentId, branch: "b", commitMessage: "Add b" });
    expect([none.status, causeOf(none)]).toEqual([400, "pull_requests_unsupported"]);
  });
});

describe("a tree made to cheat", () => {
  test("leads nowhere: its diff, files, push and pull request are those of its own content", async () => {
    const run = await runAt(hosts.github);
    const { environmentId } = run;
    const elsewhere = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
    const mark = join(temporaryFolder(), "mark");
    await run.does(maliciousRepository(mark, elsewhere.folder));
    const folder = basename(run.path);
    await call("EnvironmentService/GetEnvironmentChanges", { environmentId, refresh: true });
    const { files } = await call("EnvironmentService/GetEnvironmentDiff", { environmentId });
    const patches = new Map(files.map(({ path, patch }: Answer["body"]) => [path, patch]));
    expect([...patches.keys()]).toEqual(
      expect.arrayContaining([
        `${folder}/b.txt`,
        `${folder}/passwd`,
        `${folder}/root`,
        `${folder}/${ODD_NAME}`,
      ]),
    );
    expect(patches.get(`${folder}/passwd`)).toContain("+/etc/passwd");
    expect(JSON.stringify([...patches])).not.toContain("root:");
    const listed = await call("EnvironmentService/ListEnvironmentFiles", { environmentId, path: folder });
    const names = listed.files.map(({ name }: Answer["body"]) => name);
    expect(names).toContain(ODD_NAME);
    expect(names).not.toContain(".git");
    for (const path of ["passwd", "root/etc/passwd", ".git/config", "sub/.git"]) {
      const body = { environmentId, path: `${folder}/${path}` };
      const read = await post(server, "EnvironmentService/ReadEnvironmentFile", body);
      expect([path, read.status, JSON.stringify(read.body).includes("root:")]).toEqual([path, 400, false]);
    }
    const wanted = { environmentId, branch: "b", commitMessage: "With the rest", title: "Add b" };
    await succeeded(pushed({ environmentId, branch: "b", commitMessage: "With the rest" }));
    const { push, pullRequest } = await succeeded(opened(wanted));
    expect(push).toMatchObject({
      commit: run.origin.find("b"),
      remote: `${hosts.github.url}/${run.path}.git`,
    });
    expect(pullRequest.pullRequest).toMatchObject({ fromBranch: "b", toBranch: "main" });
    expect(run.origin.git("ls-tree", "b", "passwd")).toMatch(/^120000 blob/);
    expect(run.origin.git("ls-tree", "-z", "--name-only", "b").split("\0")).toContain(ODD_NAME);
    expect(elsewhere.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
    expect(existsSync(mark)).toBe(false);
    // The traps hold: git of the agent itself springs them.
    await run.does("git status || true");
    expect(existsSync(mark)).toBe(true);
  });
});

describe("the rules of the organization", () => {
  const ask = { branches: ["ask/*"], effect: "EFFECT_ASK" };

  test("keep the default branch and the commits of others unless they say otherwise", async () => {
    const run = await runAt(hosts.plain);
    run.origin.commit({ "theirs.txt": "x" }, { branch: "theirs", from: "main" });
    await run.does(COMMIT);
    const { environmentId } = run;
    for (const body of [
      { environmentId, branch: "main" },
      { environmentId, branch: "theirs", force: true },
    ]) {
      const denied = await pushed(body);
      expect([denied.status, reasonOf(denied)]).toEqual([400, "POLICY_DENIED"]);
    }
    const taken = await pushed({ environmentId, branch: "theirs" });
    expect([taken.status, causeOf(taken)]).toEqual([400, "branch_taken"]);
    const main = run.origin.find("main");
    await setRules([
      { branches: ["main"], effect: "EFFECT_ALLOW" },
      { branches: ["t*"], effect: "EFFECT_ALLOW", force: true },
      { branches: ["kept/**"], effect: "EFFECT_DENY" },
    ]);
    const kept = await pushed({ environmentId, branch: "kept/a/b" });
    expect([kept.status, reasonOf(kept)]).toEqual([400, "POLICY_DENIED"]);
    expect(JSON.stringify(kept.body)).toContain("agentPolicy.pushRules.rules[2]");
    expect(run.origin.find("kept/a/b")).toBeUndefined();
    expect((await succeeded(pushed({ environmentId, branch: "main" }))).push.outcome).toBe(
      "OUTCOME_ADVANCED",
    );
    expect(run.origin.find("main")).not.toBe(main);
    const forced = await succeeded(pushed({ environmentId, branch: "theirs", force: true }));
    expect(forced.push.outcome).toBe("OUTCOME_REPLACED");
    expect(run.origin.find("theirs")).toBe(run.origin.find("main"));
  });

  test("ask others, whose approval holds for exactly what was asked, and once", async () => {
    await setRules([ask]);
    const run = await runAt(hosts.github);
    await run.does(COMMIT);
    const { environmentId } = run;
    const wanted = { environmentId, branch: "ask/b", title: "Add b", body: "It was missing." };
    const waiting = await succeeded(opened(wanted));
    expect(waiting.push.state).toBe("STATE_WAITING_FOR_APPROVAL");
    expect(waiting.pullRequest ?? null).toBeNull();
    const { approvalId } = waiting.push;
    expect((await succeeded(opened(wanted))).push.approvalId).toBe(approvalId);
    expect(run.origin.find("ask/b")).toBeUndefined();
    const { approval } = await call("ApprovalService/GetApproval", { approvalId }, other.token);
    expect(approval).toMatchObject({
      kind: "APPROVAL_KIND_PUSH",
      asker: { environmentId },
      policyFieldPath: "agentPolicy.pushRules.rules[0]",
      deciders: { excludesStarter: true },
    });
    expect(JSON.parse(approval.requestJson)).toMatchObject({
      branch: "ask/b",
      remote: waiting.push.remote,
      commit: waiting.push.commit,
      pullRequest: { title: "Add b", body: "It was missing.", base: "main" },
    });
    const decision = { approvalId, digest: approval.digest, decision: "DECISION_APPROVE" };
    const own = await post(server, "ApprovalService/DecideApproval", decision);
    expect([own.status, reasonOf(own)]).toEqual([403, "PERMISSION_DENIED"]);
    await call("ApprovalService/DecideApproval", decision, other.token);
    // Other words are another request.
    const others = await succeeded(opened({ ...wanted, title: "Add c" }));
    expect(others.push).toMatchObject({ state: "STATE_WAITING_FOR_APPROVAL" });
    expect(others.push.approvalId).not.toBe(approvalId);
    const done = await succeeded(opened(wanted));
    expect(done).toMatchObject({
      push: { state: "STATE_DONE" },
      pullRequest: { pullRequest: { title: "Add b" } },
    });
    expect(run.origin.find("ask/b")).toBe(waiting.push.commit);
    expect(hosts.github.pullRequests().filter((each) => each.repository === run.path)).toHaveLength(1);
    const carried = await call("ApprovalService/GetApproval", { approvalId });
    expect(carried.approval.carriedOutAt).not.toBeNull();
    // Once the branch is gone, the approval does not bring it back.
    run.origin.git("update-ref", "-d", "refs/heads/ask/b");
    hosts.github.closePullRequest(run.path, 1);
    expect((await succeeded(opened(wanted))).push).toMatchObject({ state: "STATE_WAITING_FOR_APPROVAL" });
  });

  test("keep what people have denied", async () => {
    await setRules([ask]);
    const run = await runAt(hosts.plain);
    await run.does(COMMIT);
    const body = { environmentId: run.environmentId, branch: "ask/b" };
    const { approvalId } = (await succeeded(pushed(body))).push;
    const { approval } = await call("ApprovalService/GetApproval", { approvalId }, other.token);
    const decision = { approvalId, digest: approval.digest, decision: "DECISION_DENY", reason: "not now" };
    await call("ApprovalService/DecideApproval", decision, other.token);
    const denied = await pushed(body);
    expect([denied.status, causeOf(denied)]).toEqual([400, "approval_denied"]);
    expect(denied.body.message).toContain("not now");
    expect(run.origin.find("ask/b")).toBeUndefined();
  });
});

describe("who pushes", () => {
  test("is the caller with its own credential, also in the environment of somebody else", async () => {
    const run = await runAt(hosts.plain, { token: member.token });
    await run.does(COMMIT);
    const { environmentId } = run;
    // An administrator may, but has no credential of its own: the creator's is not used.
    const lent = await pushed({ environmentId }, other.token);
    expect([lent.status, causeOf(lent)]).toEqual([400, "credential_withheld"]);
    expect(run.origin.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
    const { push } = await succeeded(pushed({ environmentId }));
    expect(push.outcome).toBe("OUTCOME_CREATED");
    const { entries } = await call("EventService/ListAuditLogs", { pagination: { pageSize: 100 } });
    const reads = entries.filter(({ action }: { action: string }) => /GetQuestionCredential/.test(action));
    expect(reads.length).toBeGreaterThan(0);
    expect(entries.some(({ action }: { action: string }) => action === "environment/pushed")).toBe(true);
  });

  test("is nobody else: no other member, no other organization, no environment, no blocked account", async () => {
    const run = await runAt(hosts.plain);
    await run.does(`${COMMIT}; echo "$CHARTROOM_TOKEN" > ../token`);
    const { environmentId } = run;
    const stranger = await addOrganization(server, `stranger-${count}`);
    const blocked = await addMember(server, { organizationId, email: "blocked@example.org" });
    await call("AccountService/BlockAccount", { accountId: blocked.accountId, reason: "left" });
    for (const push of [pushed, opened]) {
      const body = { environmentId };
      expect((await push(body, member.token)).status).toBe(403);
      expect((await push(body, stranger.token)).status).toBe(404);
      expect((await push(body, blocked.token)).status).toBe(403);
      expect((await push(body, "")).status).toBe(401);
    }
    expect(run.origin.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
  });

  test("leaves its credential in no log, row or argument", () => {
    for (const text of [server.logText(), runner.output()]) expect(text).not.toContain(TOKEN);
  });
});

test("where the environment's runner is away, the push says so", async () => {
  const spec = { content: { initializer: repository(hosts.plain.addRepository("team/none")) } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "None", spec });
  const answer = await pushed({ environmentId: environment.id });
  expect([answer.status, reasonOf(answer)]).toEqual([400, "ENVIRONMENT_UNREACHABLE"]);
});
