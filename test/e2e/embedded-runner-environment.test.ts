import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import {
  type HostedRunner,
  startRegisteredHostedRunner,
  startRegisteredRunner,
  stopRunners,
} from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
let runner: HostedRunner & { readonly runnerId: string };
let repository: BareRepository;
beforeAll(async () => {
  server = await startHostedServer();
  repository = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  runner = await startRegisteredHostedRunner(server);
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const call = (operation: string, body: object) => post(server, `EnvironmentService/${operation}`, body);
const create = async (git: object, spec: object = {}, on: ReachableServer = server): Promise<string> => {
  const content = { initializer: { specs: [{ git }] } };
  const request = { spec: { ...spec, content } };
  return (await succeeded(post(on, "EnvironmentService/CreateEnvironment", request))).environment.id;
};
const get = async (environmentId: string, on: ReachableServer = server) =>
  (await succeeded(post(on, "EnvironmentService/GetEnvironment", { environmentId }))).environment;
const reaches = (id: string, phase: string, on: ReachableServer = server) =>
  until(
    () => get(id, on),
    ({ status }) => status.phase === `ENVIRONMENT_PHASE_${phase}`,
  );
/** What the audit trail says of an environment's phases, in their order. */
const phasesOf = async (id: string): Promise<string[]> => {
  const { body } = await post(server, "EventService/ListAuditLogs", { filter: { subjectIds: [id] } });
  return body.entries
    .flatMap(({ changes }: { changes: { path: string; after: string }[] }) => changes)
    .filter(({ path }: { path: string }) => path === "status.phase")
    .map(({ after }: { after: string }) => JSON.parse(after).replace("ENVIRONMENT_PHASE_", ""))
    .reverse();
};
const treeOf = (id: string, { stateDir }: Pick<HostedRunner, "stateDir"> = runner) =>
  join(stateDir, "workspaces", id, "tree");

describe("an environment", () => {
  test("is a folder with the repository's clone, which outlives a stop and goes when it is deleted", async () => {
    const id = await create({ remoteUri: repository.url });
    const environment = await reaches(id, "RUNNING");
    expect(environment.metadata.runnerId).toBe(runner.runnerId);
    const file = join(treeOf(id), "hello", "a.txt");
    expect(readFileSync(file, "utf8")).toBe("one\n");
    writeFileSync(file, "mine");

    await succeeded(call("StopEnvironment", { environmentId: id }));
    await reaches(id, "STOPPED");
    await succeeded(call("StartEnvironment", { environmentId: id }));
    await reaches(id, "RUNNING");
    expect(readFileSync(file, "utf8")).toBe("mine");

    await succeeded(call("DeleteEnvironment", { environmentId: id }));
    await until(
      () => call("GetEnvironment", { environmentId: id }),
      (answer) => reasonOf(answer) === "NOT_FOUND",
    );
    expect(existsSync(join(runner.stateDir, "workspaces", id))).toBe(false);
    expect(await phasesOf(id)).toEqual(["RUNNING", "STOPPED", "RUNNING", "DELETING"]);
    await runner.untilLogged("work ended", { work: "environment", environment: id, outcome: "done" });
  });

  test("without content is an empty folder", async () => {
    const { environment } = await succeeded(call("CreateEnvironment", {}));
    await reaches(environment.id, "RUNNING");
    expect(existsSync(treeOf(environment.id))).toBe(true);
  });

  test("holds the branch that was asked for, in the folder that was", async () => {
    repository.commit({ "b.txt": "two" }, { branch: "feature/b", from: "main" });
    const git = {
      remoteUri: repository.url,
      targetMode: "CLONE_TARGET_MODE_REMOTE_BRANCH",
      cloneTarget: "feature/b",
      checkoutLocation: "deep/down",
    };
    const id = await create(git);
    await reaches(id, "RUNNING");
    const folder = join(treeOf(id), "deep/down");
    expect(readFileSync(join(folder, "b.txt"), "utf8")).toBe("two");
    expect(runGit(folder, ["branch", "--show-current"])).toBe("feature/b");
  });

  test.each<[string, (folder: string) => [object, object?], RegExp]>([
    [
      "its repository is not there",
      (folder) => [{ remoteUri: `file://${folder}/absent.git` }],
      /git ls-remote failed: there is no such repository/,
    ],
    [
      "its remote is at a private address",
      () => [{ remoteUri: "https://127.0.0.1/team/hello.git" }],
      /^127\.0\.0\.1 is at an address that is not public/,
    ],
    [
      "its branch is not there",
      () => [
        { remoteUri: repository.url, targetMode: "CLONE_TARGET_MODE_REMOTE_BRANCH", cloneTarget: "absent" },
      ],
      /the remote has no branch "absent"/,
    ],
    [
      "its folder leaves the workspace",
      () => [{ remoteUri: repository.url, checkoutLocation: "../out" }],
      /the path "\.\.\/out" must be relative and without `\.\.`/,
    ],
    [
      "its devcontainer file leaves the repository",
      () => [
        { remoteUri: repository.url },
        { devcontainer: { devcontainerFilePath: "../../../etc/passwd" } },
      ],
      /the path "\.\.\/\.\.\/\.\.\/etc\/passwd" must be relative/,
    ],
    [
      "its automations file leaves the repository by a symbolic link",
      (folder) => {
        const work = join(folder, "work");
        mkdirSync(work);
        runGit(folder, ["clone", "--quiet", repository.folder, work]);
        symlinkSync("/etc", join(work, "link"));
        runGit(work, ["checkout", "--quiet", "-b", "linked"]);
        runGit(work, ["add", "link"]);
        runGit(work, ["commit", "--quiet", "-m", "link"]);
        runGit(work, ["push", "--quiet", "origin", "linked"]);
        const branch = { targetMode: "CLONE_TARGET_MODE_REMOTE_BRANCH", cloneTarget: "linked" };
        const automationsFile = { automationsFilePath: "link/passwd" };
        return [{ remoteUri: repository.url, ...branch }, { automationsFile }];
      },
      /the path "link\/passwd" leaves the folder by a symbolic link/,
    ],
  ])("is stopped and says why when %s", async (_, made, message) => {
    const id = await create(...made(temporaryFolder()));
    const { spec, status } = await reaches(id, "STOPPED");
    expect(status.failureMessage).toEqual([expect.stringMatching(message)]);
    expect(spec.desiredPhase).toBe("ENVIRONMENT_PHASE_STOPPED");
    expect(existsSync(join(runner.stateDir, "workspaces", id))).toBe(false);
  });
});

describe("work under a policy that the runner does not keep", () => {
  test("waits, naming it, and is done once the policy is off", async () => {
    const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
    const { organizationId } = body;
    const set = (vetoExecPolicy: object) =>
      succeeded(
        post(server, "OrganizationService/UpdateOrganizationPolicies", { organizationId, vetoExecPolicy }),
      );
    await set({ enabled: true, executables: ["curl"], action: "KERNEL_CONTROLS_ACTION_BLOCK" });
    const id = await create({ remoteUri: repository.url });
    const { status } = await until(
      () => get(id),
      (environment) => environment.status.warningMessage.length > 0,
    );
    expect(status).toMatchObject({
      phase: "ENVIRONMENT_PHASE_CREATING",
      warningMessage: [expect.stringContaining("vetoExecPolicy")],
      failureMessage: [],
    });
    await set({ enabled: false });
    expect((await reaches(id, "RUNNING")).status.warningMessage).toEqual([]);
  });
});

test("while the policy forbids local runners, the server's own takes nothing", async () => {
  const local = await startHostedServer({ args: ["--local-runner", "--allow-file-remotes"] });
  const organizationId = (await post(local, "IdentityService/GetAuthenticatedIdentity")).body.organizationId;
  const allow = (allowLocalRunners: boolean) =>
    succeeded(
      post(local, "OrganizationService/UpdateOrganizationPolicies", { organizationId, allowLocalRunners }),
    );
  const takers = (id: string) => local.log().filter((line) => line.environment === id).length;
  await until(
    () => local.log().map(({ msg }) => msg),
    (messages) => messages.includes("the runner takes work"),
  );
  await allow(false);
  const forbidden = await create({ remoteUri: repository.url }, {}, local);
  // It has waited for as long as another runner takes to start, which then takes it.
  const other = await startRegisteredRunner(local);
  expect((await reaches(forbidden, "RUNNING", local)).metadata.runnerId).toBe(other.runnerId);
  expect([takers(forbidden), existsSync(join(treeOf(forbidden, other), "hello", "a.txt"))]).toEqual([
    0,
    true,
  ]);
  await other.stop();
  await allow(true);
  const allowed = await create({ remoteUri: repository.url }, {}, local);
  await reaches(allowed, "RUNNING", local);
  expect(takers(allowed)).toBeGreaterThan(0);
});
