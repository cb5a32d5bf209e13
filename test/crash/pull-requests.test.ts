import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { freePort } from "../harness/free-port.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { withServerData } from "../harness/member.ts";
import {
  type RunnerProcess,
  startRegisteredRunner,
  startRunnerProcess,
  stopRunners,
} from "../harness/runner-process.ts";
import { type Fault, type ReceivedRequest, type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../harness/server.ts";
import { type StartedExecution, startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";
import { addWorkflow, deliver, type TestWorkflow } from "../harness/webhook.ts";
import { giteaSignature, hubSignature } from "../harness/webhook-signing.ts";

const TOKEN = "token-of-the-executor";
const KINDS = ["github", "gitlab", "gitea"] as const;
/** Repositories of the workflow, in turns at the hosts. */
const COUNT = 20;

let server: TestServer;
let runner: RunnerProcess & { readonly runnerId: string };
let hosts: readonly ScmHost[];
let args: string[];
let serverArgs: string[];
const origins: {
  readonly host: ScmHost;
  readonly path: string;
  readonly url: string;
  readonly commits: () => string[];
}[] = [];
let run: StartedExecution;

beforeAll(async () => {
  hosts = await Promise.all(KINDS.map((kind) => startScmHost({ kind, token: TOKEN })));
  const names = hosts.map(({ host }) => host);
  args = ["--allow-private-remotes", "--plain-http-hosts", names.join(",")];
  serverArgs = [...args, "--port", String(await freePort())];
  server = await startServer({ args: serverArgs });
  runner = await startRegisteredRunner(server, { args });
  for (const host of names) {
    const request = { runnerId: runner.runnerId, host, token: TOKEN };
    await call("RunnerConfigurationService/CreateHostAuthenticationToken", request);
  }
  for (let at = 0; at < COUNT; at++) {
    const host = hosts[at % hosts.length] as ScmHost;
    const repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" });
    repository.git("config", "http.receivepack", "true");
    const path = `team/r${at}`;
    const url = host.addRepository(path, repository.folder);
    const commits = () => repository.git("log", "--format=%s", "main..add-b").split("\n");
    origins.push({ host, path, url, commits });
  }
});
afterAll(async () => {
  await stopRunners();
  await Promise.all([stopAll(), ...hosts.map((host) => host.stop())]);
});

const call = (operation: string, body: object): Promise<Answer["body"]> =>
  succeeded(post(server, operation, body));
const list = async (filter: object): Promise<Answer["body"][]> => {
  const request = { filter, pagination: { pageSize: 100 } };
  return (await call("WorkflowService/ListPullRequests", request)).pullRequests;
};
/** Has the opening of a host's next pull request fail in this way. Resolves once it is asked for. */
function nextOpening(host: ScmHost, fault: Fault): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const when = ({ method, target }: ReceivedRequest) => {
    const isMeant = method === "POST" && /\/(pulls|merge_requests)$/.test(target);
    if (isMeant) resolve();
    return isMeant;
  };
  host.fail(fault, { when });
  return promise;
}
/** Has all pull requests that are followed read at their hosts now. */
const poll = () =>
  withServerData(server, (store) =>
    store.write(SYSTEM, "test", async ({ db }) => {
      await builderOf(db)
        .updateTable("pull_request")
        .set({ next_poll_at: 0 })
        .where("next_poll_at", "is not", null)
        .execute();
    }),
  );
/** Tells the server what a host tells of the checks of a commit. */
function deliverChecks({ kind }: ScmHost, { id, secret }: TestWorkflow, url: string, sha: string) {
  if (kind === "gitlab") {
    const payload = { object_attributes: { sha }, project: { git_http_url: url } };
    const headers = { "x-gitlab-event": "Pipeline Hook", "x-gitlab-token": secret };
    return deliver(server, id, JSON.stringify(payload), headers);
  }
  const repository = { clone_url: url };
  const isGitea = kind === "gitea";
  const body = Buffer.from(
    JSON.stringify(isGitea ? { sha, repository } : { check_run: { head_sha: sha }, repository }),
  );
  const headers = isGitea
    ? { "x-gitea-event": "status", ...giteaSignature(secret, body) }
    : { "x-github-event": "check_run", ...hubSignature(secret, body) };
  return deliver(server, id, body, headers);
}

test("a workflow over 20 repositories opens one pull request each, though runner and server are killed meanwhile", async () => {
  const [github, gitlab] = hosts as [ScmHost, ScmHost, ScmHost];
  // The host has opened it, and nobody learns it.
  const lost = nextOpening(github, "unanswered");
  run = await startExecution(server, {
    actions: COUNT,
    maxParallel: 2,
    repository: (at) => origins[at]?.url ?? "",
    steps: [
      task("echo two > b.txt"),
      { pullRequest: { title: "Add b", description: "It was missing.", branch: "add-b" } },
    ],
  });
  await lost;
  await runner.kill();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const away = nextOpening(gitlab, { until: released });
  startRunnerProcess(server, { stateDir: runner.stateDir, args });
  await away;
  const { dataDir, token } = server;
  await server.kill();
  server = { ...(await startServer({ dataDir, args: serverArgs })), token };
  release();
  const filter = { workflowExecutionIds: [run.executionId] };
  await until(
    () => call("WorkflowService/GetWorkflowExecution", { workflowExecutionId: run.executionId }),
    ({ workflowExecution }) => workflowExecution.status.phase === "WORKFLOW_EXECUTION_PHASE_COMPLETED",
  );
  const opened = await list(filter);
  expect(opened.map(({ pullRequest }) => pullRequest.url).sort()).toEqual(
    hosts.flatMap((host) => host.pullRequests().map((each) => each.url)).sort(),
  );
  expect(new Set(opened.map(({ workflowExecutionActionId }) => workflowExecutionActionId)).size).toBe(COUNT);
  for (const { host, path, commits } of origins) {
    expect([path, commits()]).toEqual([path, ["Add b"]]);
    expect(host.pullRequests().filter(({ repository }) => repository === path)).toHaveLength(1);
  }
});

test.each(KINDS.map((kind, at) => [kind, at] as const))(
  "a check at a host with the API of %s turns red by its webhook, and green by polling, for all to see",
  async (_, at) => {
    const { host, path, url } = origins[at] as (typeof origins)[number];
    const ofRun = { workflowExecutionIds: [run.executionId] };
    const find = (all: readonly Answer["body"][]) =>
      all.find(({ pullRequest }) => pullRequest.url.startsWith(`${host.url}/${path}/`));
    const isRead = (all: readonly Answer["body"][]) => !!find(all)?.pullRequest.headSha;
    const read = find(await until(() => list(ofRun), isRead));
    const workflow = await addWorkflow(server);
    host.changePullRequest(path, 1, { checks: { build: "failure" } });
    await deliverChecks(host, workflow, url, read.pullRequest.headSha);
    const filters = [
      ofRun,
      { workflowExecutionActionIds: [read.workflowExecutionActionId] },
      { environmentIds: [read.environmentId] },
    ];
    const checksIn = async (filter: object) => find(await list(filter))?.checks;
    const shown = () => Promise.all(filters.map(checksIn));
    const all = (checks: string) => (found: readonly string[]) => found.every((each) => each === checks);
    await until(shown, all("PULL_REQUEST_CHECKS_FAILED"));
    host.changePullRequest(path, 1, { checks: { build: "success" } });
    await poll();
    await until(shown, all("PULL_REQUEST_CHECKS_PASSED"));
    host.changePullRequest(path, 1, { state: "merged" });
    await poll();
    await until(
      () => list({ ...ofRun, states: ["STATE_MERGED"] }),
      (merged) => find(merged) !== undefined && merged.length === at + 1,
    );
    expect(await list({ ...ofRun, states: ["STATE_OPEN"] })).toHaveLength(COUNT - at - 1);
    if (host.kind === "github")
      expect(host.requests.some(({ headers }) => headers["if-none-match"])).toBe(true);
  },
);
