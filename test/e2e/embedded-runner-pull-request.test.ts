import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readLog } from "../harness/action-log.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { maliciousRepository, ODD_NAME } from "../harness/malicious-repository.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { startExecution, task, type WorkflowRunOptions } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

const TOKEN = "token-of-the-executor";

let server: HostedServer;
let hosts: Readonly<Record<"github" | "gitlab" | "gitea" | "plain", ScmHost>>;
let runnerOutput: () => string;
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
  server = await startHostedServer({ args });
  const { runnerId, output } = await startRegisteredHostedRunner(server, { args });
  runnerOutput = output;
  for (const host of names) {
    const request = { runnerId, host, token: TOKEN, source: "HOST_AUTHENTICATION_TOKEN_SOURCE_PAT" };
    await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", request));
  }
});
afterAll(async () => {
  await stopRunners();
  await Promise.all([stopAll(), ...Object.values(hosts).map((host) => host.stop())]);
});

let count = 0;
/** A repository at a host, with what was made of it. */
function repositoryAt(host: ScmHost): BareRepository & { readonly path: string; readonly cloneUrl: string } {
  count++;
  const repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  repository.git("config", "http.receivepack", "true");
  const path = `team/r${count}`;
  return { ...repository, path, cloneUrl: host.addRepository(path, repository.folder) };
}

const pullRequest = (more: object = {}) => ({
  pullRequest: { title: "Add b", description: "It was missing.", branch: "add-b", ...more },
});
const steps = [task("echo two > b.txt"), pullRequest()];

/** The one action of a new execution over a repository, once it is over. */
async function ran(cloneUrl: string, run: WorkflowRunOptions = { steps }) {
  const started = await startExecution(server, { repository: () => cloneUrl, ...run });
  await until(started.execution, ({ status }) => status.phase === "WORKFLOW_EXECUTION_PHASE_COMPLETED");
  const [action] = await started.actions();
  return { ...started, action, status: action.status as Answer["body"] };
}
const reasons = (errors: readonly { reason: string }[]) => errors.map(({ reason }) => reason);

describe.each(["github", "gitlab", "gitea"] as const)("at a host with the API of %s", (kind) => {
  test("a step commits what changed, pushes the branch and opens a pull request", async () => {
    const repository = repositoryAt(hosts[kind]);
    const { status, workflowId, executionId, action } = await ran(repository.cloneUrl, {
      steps: [task("echo two > b.txt"), pullRequest({ draft: true })],
    });
    expect([status.failures, status.warnings]).toEqual([[], []]);
    const [opened] = hosts[kind].pullRequests().filter((each) => each.repository === repository.path);
    expect(opened).toMatchObject({ branch: "add-b", base: "main", draft: true });
    expect(opened?.title).toBe({ github: "Add b", gitlab: "Draft: Add b", gitea: "WIP: Add b" }[kind]);
    expect(opened?.description).toContain("It was missing.");
    expect(status.stepStatuses[1].pullRequestUrl).toBe(opened?.url);
    expect(repository.read("add-b", "b.txt")).toBe("two");
    expect(repository.messages("add-b")[0]).toBe(
      `Add b\n\nIt was missing.\n\nChartroom-Workflow: ${workflowId}\nChartroom-Execution: ${executionId}\nChartroom-Action: ${action.id}`,
    );
    expect(repository.git("log", "-1", "--format=%an %ae", "add-b")).toBe("Chartroom noreply@127.0.0.1");
  });

  test("the pull request is listed with its execution, in the state that its host reports", async () => {
    const repository = repositoryAt(hosts[kind]);
    const { executionId, action, call } = await ran(repository.cloneUrl);
    const filter = { workflowExecutionIds: [executionId] };
    const { pullRequests } = await until(
      () => call("ListPullRequests", { filter }),
      (body) => body.pullRequests[0]?.seenAt !== undefined && body.pullRequests[0].seenAt !== null,
    );
    expect(pullRequests).toMatchObject([
      {
        workflowExecutionActionId: action.id,
        environmentId: action.status.environmentId,
        stepIndex: 1,
        pullRequest: { id: "1", title: "Add b", fromBranch: "add-b", toBranch: "main", state: "STATE_OPEN" },
        checks: "PULL_REQUEST_CHECKS_NONE",
        following: "PULL_REQUEST_FOLLOWING_ACTIVE",
        problem: "",
      },
    ]);
  });

  test("the next execution of the workflow brings branch and pull request up to date", async () => {
    const repository = repositoryAt(hosts[kind]);
    const first = await ran(repository.cloneUrl);
    const before = repository.find("add-b");
    repository.commit({ "c.txt": "three" });
    const again = await first.call("StartWorkflow", { workflowId: first.workflowId });
    const { id } = again.workflowExecution;
    const { workflowExecution } = await until(
      () => first.call("GetWorkflowExecution", { workflowExecutionId: id }),
      (body) => body.workflowExecution.status.phase === "WORKFLOW_EXECUTION_PHASE_COMPLETED",
    );
    expect(workflowExecution.status.failedActionCount).toBe(0);
    expect(repository.list("add-b")).toEqual(["a.txt", "b.txt", "c.txt"]);
    expect(repository.find("add-b")).not.toBe(before);
    expect(hosts[kind].pullRequests().filter((each) => each.repository === repository.path)).toHaveLength(1);
  });
});

describe("a pull-request step", () => {
  test("of a remote without pull requests pushes the branch, and the action gets a warning", async () => {
    const repository = repositoryAt(hosts.plain);
    const { status } = await ran(repository.cloneUrl);
    expect([reasons(status.failures), reasons(status.warnings)]).toEqual([[], ["pull_requests_unsupported"]]);
    expect(repository.read("add-b", "b.txt")).toBe("two");
  });

  test("without changes does nothing, with a warning", async () => {
    const repository = repositoryAt(hosts.github);
    const { status } = await ran(repository.cloneUrl, { steps: [task("true"), pullRequest()] });
    expect([reasons(status.failures), reasons(status.warnings)]).toEqual([[], ["nothing_to_commit"]]);
    expect(repository.find("add-b")).toBeUndefined();
  });

  test("keeps its warning when a later step fails", async () => {
    const repository = repositoryAt(hosts.plain);
    const { status } = await ran(repository.cloneUrl, { steps: [...steps, task("exit 3")] });
    expect([reasons(status.failures), reasons(status.warnings)]).toEqual([
      ["command_failed"],
      ["pull_requests_unsupported"],
    ]);
  });

  test.each([10, 11])("warns of the first ten at most where %i find no changes", async (count) => {
    const repository = repositoryAt(hosts.plain);
    const { status } = await ran(repository.cloneUrl, { steps: Array(count).fill(pullRequest()) });
    expect([reasons(status.failures), reasons(status.warnings)]).toEqual([
      [],
      Array(10).fill("nothing_to_commit"),
    ]);
  });

  test("waits for a host that is out of order for a moment", async () => {
    const repository = repositoryAt(hosts.github);
    hosts.github.fail({ status: 503 }, { when: ({ target }) => /\/pulls$/.test(target) });
    const { status } = await ran(repository.cloneUrl);
    expect([reasons(status.failures), status.stepStatuses[1].pullRequestUrl]).toEqual([
      [],
      expect.stringContaining(repository.path),
    ]);
  });

  test.each<[string, string, string]>([
    ["its branch is the default one", "main", "branch_is_base"],
    ["its branch has somebody else's commits", "theirs", "branch_taken"],
  ])("fails when %s, and pushes nothing", async (_, branch, reason) => {
    const repository = repositoryAt(hosts.github);
    repository.commit({ "d.txt": "four" }, { branch: "theirs", from: "main" });
    const heads = repository.git("for-each-ref");
    const { status } = await ran(repository.cloneUrl, { steps: [steps[0] ?? {}, pullRequest({ branch })] });
    expect(reasons(status.failures)).toEqual([reason]);
    expect(repository.git("for-each-ref")).toBe(heads);
  });
});

test("a step in a tree made to cheat commits and proposes what is in it, and leads nowhere", async () => {
  const repository = repositoryAt(hosts.github);
  const elsewhere = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
  const mark = join(temporaryFolder(), "mark");
  // The traps hold: git of the step after it springs them.
  const spring = `test ! -e ${mark} && { git status >/dev/null 2>&1; test -e ${mark}; }`;
  const { action, status } = await ran(repository.cloneUrl, {
    steps: [task(maliciousRepository(mark, elsewhere.folder)), pullRequest(), task(spring)],
  });
  expect([status.failures, status.warnings]).toEqual([[], []]);
  const opened = hosts.github.pullRequests().filter((each) => each.repository === repository.path);
  expect(opened).toMatchObject([{ branch: "add-b", base: "main" }]);
  const committed = repository.git("ls-tree", "-z", "add-b").split("\0").filter(Boolean);
  const modes = committed.map((entry) => [entry.slice(entry.indexOf("\t") + 1), entry.slice(0, 6)]);
  expect(Object.fromEntries(modes)).toEqual({
    ...{ ".gitattributes": "100644", "a.txt": "100644", "b.txt": "100644", [ODD_NAME]: "100644" },
    // The repository inside is a commit's name, as git adds it: nothing of what that holds.
    ...{ passwd: "120000", root: "120000", sub: "160000" },
  });
  expect(elsewhere.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
  expect(await readLog(server, action.id)).not.toContain("\u001b");
});

test("neither a command nor any log sees the credential", async () => {
  const repository = repositoryAt(hosts.github);
  const look = "env; git config --list; cat .git/config; ls -la ~; git remote -v; echo one > c.txt";
  const { action } = await ran(repository.cloneUrl, { steps: [task(look), pullRequest()] });
  expect(action.status.failures).toEqual([]);
  const log = await readLog(server, action.id);
  expect(log).toContain(repository.cloneUrl);
  for (const text of [log, runnerOutput(), server.logText(), JSON.stringify(action)]) {
    expect(text).not.toContain(TOKEN);
  }
});
