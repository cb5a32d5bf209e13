import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository } from "../harness/git-repository.ts";
import { insertEnvironmentToken, insertRunnerToken } from "../harness/machine-token.ts";
import { withServerData } from "../harness/member.ts";
import { type HostedRunner, startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { filesIn, storedTexts } from "../harness/stored-texts.ts";
import { until } from "../harness/until.ts";

/** Letters and digits only, so that it is the same in every encoding. */
const TOKEN = `canary${randomBytes(16).toString("hex")}`;

let server: HostedServer;
let runner: HostedRunner & { readonly runnerId: string };
let host: ScmHost;
let origin: BareRepository;
let organizationId: string;
let environmentId: string;
/** The title of a pull request, so that the search is known to find what is there. */
const CONTROL = `control-${randomBytes(12).toString("hex")}`;
/** Everything that came back. */
const answers: string[] = [];

beforeAll(async () => {
  host = await startScmHost({ kind: "gitea", token: TOKEN });
  const args = ["--allow-private-remotes", "--plain-http-hosts", host.host];
  server = await startHostedServer({ args });
  runner = await startRegisteredHostedRunner(server, { args });
  ({ organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {}));
  await storeCredential(server.token);
  origin = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  origin.git("config", "http.receivepack", "true");
  const spec = { content: { initializer: repository(host.addRepository("team/hello", origin.folder)) } };
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "Pushed", spec });
  environmentId = environment.id;
  // The runner listens once it says that there is nothing to push.
  await until(
    () => asked("PushEnvironmentBranch"),
    ({ body }) => /nothing has changed/.test(body.message),
  );
  writeFileSync(join(runner.stateDir, "workspaces", environmentId, "tree/hello/b.txt"), "two\n");
});
afterAll(async () => {
  await stopRunners();
  await Promise.all([stopAll(), host.stop()]);
});

async function sent(operation: string, body: object, token = server.token): Promise<Answer> {
  const answer = await post(server, operation, body, token);
  answers.push(JSON.stringify([...answer.header, answer.body]));
  return answer;
}
const call = (operation: string, body: object, token?: string): Promise<Answer["body"]> =>
  succeeded(sent(operation, body, token));
const storeCredential = (token: string) =>
  call(
    "RunnerConfigurationService/CreateHostAuthenticationToken",
    { runnerId: runner.runnerId, host: host.host, token: TOKEN },
    token,
  );
const asked = (operation: "PushEnvironmentBranch" | "OpenPullRequest", token?: string, more: object = {}) =>
  sent(
    `EnvironmentService/${operation}`,
    { environmentId, branch: "b", commitMessage: "Add b", ...more },
    token,
  );
const branches = () => origin.git("for-each-ref", "--format=%(refname)");

/** Has everybody who may not push try it. */
async function expectRefused(tokens: Readonly<Record<string, string>>): Promise<void> {
  const requests = host.requests.length;
  for (const [whose, token] of Object.entries(tokens)) {
    for (const operation of ["PushEnvironmentBranch", "OpenPullRequest"] as const) {
      const answer = await asked(operation, token);
      expect([whose, operation, answer.status, reasonOf(answer)]).toEqual([
        whose,
        operation,
        403,
        "PERMISSION_DENIED",
      ]);
    }
  }
  expect([branches(), host.requests.length]).toEqual(["refs/heads/main", requests]);
}

test("tokens of the environment itself, of its runner, and ones that only read push nothing", async () => {
  const { runnerId } = runner;
  const machine = await withServerData(server, async (store, keys) => ({
    environment: (await insertEnvironmentToken(store, keys, { organizationId, environmentId })).value,
    runner: (await insertRunnerToken(store, keys, { organizationId, runnerId })).value,
  }));
  // The environment's token is one that is taken elsewhere.
  await call("EnvironmentService/GetEnvironment", { environmentId }, machine.environment);
  const { token: reading } = await call("UserService/CreatePersonalAccessToken", { readOnly: true });
  await call("EnvironmentService/GetEnvironment", { environmentId }, reading);
  await expectRefused({ ...machine, reading });
});

test("a service account pushes what it made itself, with its own credential, and nothing else", async () => {
  const { serviceAccount } = await call("ServiceAccountService/CreateServiceAccount", {
    name: "Nightly",
    validUntil: "2999-12-31T00:00:00Z",
  });
  const { token } = await call("ServiceAccountService/CreateServiceAccountToken", {
    serviceAccountId: serviceAccount.id,
  });
  await expectRefused({ account: token });
  const { token: credential } = await storeCredential(token);
  const spec = { content: { initializer: repository(`${host.url}/team/hello.git`) } };
  const made = await call("EnvironmentService/CreateEnvironment", { name: "Own", spec }, token);
  const own = { environmentId: made.environment.id, branch: "of-account" };
  const push = () => asked("PushEnvironmentBranch", token, own);
  await until(push, ({ body }) => /nothing has changed/.test(body.message));
  writeFileSync(join(runner.stateDir, "workspaces", own.environmentId, "tree/hello/c.txt"), "three\n");
  const { push: done } = await succeeded(push());
  expect(done).toMatchObject({ outcome: "OUTCOME_CREATED", commit: origin.find("of-account") });
  expect(origin.git("log", "-1", "--format=%an", "of-account")).toBe("Nightly");
  await call("RunnerConfigurationService/DeleteHostAuthenticationToken", { id: credential.id }, token);
  const withheld = await push();
  expect([withheld.status, reasonOf(withheld)]).toEqual([400, "PUSH_REFUSED"]);
  expect(withheld.body.message).toContain("you have no credential");
});

test("the credential of a push is in no row, file, log or answer, whether the host takes it or not", async () => {
  const { pullRequest } = await succeeded(
    asked("OpenPullRequest", undefined, { title: CONTROL, body: "It was missing." }),
  );
  expect(pullRequest.pullRequest).toMatchObject({ fromBranch: "b", title: CONTROL });
  const used = host.requests.filter(({ headers }) => JSON.stringify(headers).includes(TOKEN));
  expect(used.length).toBeGreaterThan(0);
  // Words of the host that repeat the credential.
  const opening = { when: ({ target }: { target: string }) => /\/pulls/.test(target), times: 9 };
  host.fail({ status: 422, body: { message: `not with ${TOKEN}` } }, opening);
  writeFileSync(join(runner.stateDir, "workspaces", environmentId, "tree/hello/d.txt"), "four\n");
  const refused = await asked("OpenPullRequest", undefined, { branch: "d" });
  expect(refused.status).toBe(400);
  for (const operation of [
    "WorkflowService/ListPullRequests",
    "EventService/ListAuditLogs",
    "RunnerConfigurationService/ListHostAuthenticationTokens",
  ])
    await call(operation, { pagination: { pageSize: 100 } });
  const places = new Map([
    ...(await storedTexts(server.dataDir)),
    ...filesIn(runner.stateDir).map((file) => [file, readFileSync(file, "latin1")] as const),
    ["log of the server", server.logText()],
    ["log of the runner", runner.output()],
    ["answers", answers.join("\n")],
  ]);
  const hidden = [
    TOKEN,
    Buffer.from(TOKEN).toString("base64").slice(0, 40),
    Buffer.from(TOKEN).toString("hex"),
  ];
  const found = [...places].filter(([, text]) => hidden.some((form) => text.includes(form)));
  expect(found.map(([place]) => place)).toEqual([]);
  // What is there is found.
  expect([...places].filter(([, text]) => text.includes(CONTROL)).length).toBeGreaterThan(1);
});
