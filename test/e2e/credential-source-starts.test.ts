import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDuePrebuilds } from "../../src/jobs/prebuilds.ts";
import { atTime } from "../harness/at-time.ts";
import { post, reasonOf } from "../harness/call.ts";
import {
  type CredentialFixture,
  type CredentialOwner,
  createCredentialFixture,
  HOST,
  remote,
} from "../harness/credential-fixture.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { deliver, ledgerOf, verdictsOf } from "../harness/webhook.ts";
import { GITHUB_PULL_REQUEST, openedPullRequest } from "../harness/webhook-payload.ts";
import { hubSignature } from "../harness/webhook-signing.ts";

const EVENT_ADVICE = /deliver the event again .* rotate the webhook's secret .* after 24 hours$/;
const DAY_MS = 24 * 3_600_000;

let server: ReachableServer;
let world: CredentialFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  world = await createCredentialFixture(server);
});
afterAll(stopAll);

const repositories = (...names: string[]) => ({
  repositories: { repositoryUrls: { repoUrls: names.map(remote) } },
});
const takeOver = (workflowId: string, by: CredentialOwner) =>
  world.call("WorkflowService/UpdateWorkflow", { workflowId, executor: by.subject }, by);

describe("a workflow that an administrator has taken over", () => {
  test("uses the administrator's credential on what it says, and lets its maker choose nothing else", async () => {
    const { admin, member } = world;
    const workflowId = await world.workflow(member, repositories("ship"));
    await takeOver(workflowId, admin);
    await world.start(workflowId, member, { parameters: {} });
    expect(await world.credentialOfNextAction()).toBe("admin");
    const own = { workflowId, contextOverride: repositories("secrets") };
    const refused = await post(server, "WorkflowService/StartWorkflow", own, member.token);
    expect(reasonOf(refused)).toBe("PERMISSION_DENIED");
    await world.start(workflowId, admin, { contextOverride: repositories("other") });
    expect(await world.credentialOfNextAction()).toBe("admin");
  });

  test("does nothing of an earlier execution again for its maker, and for others without a credential", async () => {
    const { admin, member } = world;
    const workflowId = await world.workflow(member, repositories("ship"));
    const { workflowExecution } = await world.start(workflowId, member, {
      contextOverride: repositories("secrets"),
    });
    expect(await world.credentialOfNextAction()).toBe("member");
    await takeOver(workflowId, admin);
    const retry = { workflowExecutionId: workflowExecution.id };
    const refused = await post(server, "WorkflowService/RetryFailedActions", retry, member.token);
    expect([refused.status, reasonOf(refused)]).toEqual([403, "PERMISSION_DENIED"]);
    await world.call("WorkflowService/RetryFailedActions", retry, admin);
    const work = await world.takeAction();
    const withheld = await world.runner.credential(work, HOST);
    expect(reasonOf(withheld)).toBe("CREDENTIAL_WITHHELD");
    expect(withheld.body.message).toMatch(/administrator can start the workflow \(StartWorkflow\)$/);
    await world.fail(work);
    // What ran since may be done again by its maker: it is what the administrator took on.
    const later = (await world.start(workflowId, member)).workflowExecution;
    expect(await world.credentialOfNextAction()).toBe("admin");
    await world.call("WorkflowService/RetryFailedActions", { workflowExecutionId: later.id }, member);
    expect(await world.credentialOfNextAction()).toBe("admin");
  });
});

describe("an event of a pull request", () => {
  const triggers = [{ pullRequest: {}, context: { fromTrigger: {} } }];
  const event = (name: string) =>
    Buffer.from(
      JSON.stringify(
        openedPullRequest({
          "repository.clone_url": remote(name),
          "repository.html_url": `https://${HOST}/team/${name}`,
          "repository.ssh_url": `git@${HOST}:team/${name}.git`,
          "repository.full_name": `team/${name}`,
          // Not from a fork, which people would be asked about first.
          "pull_request.head.repo.id": 71004,
        }),
      ),
    );
  const secretOf = async (workflowId: string, by: CredentialOwner) =>
    (await world.call("WorkflowService/GetWorkflowWebhookSecret", { workflowId }, by)).secret;
  const send = async (workflowId: string, secret: string, name: string) => {
    const body = event(name);
    const headers = { ...GITHUB_PULL_REQUEST, ...hubSignature(secret, body) };
    expect(verdictsOf(await deliver(server, workflowId, body, headers))).toEqual([202, "STARTED"]);
  };

  test("names a repository on the word of everybody who was given the secret", async () => {
    const { admin, colleague, member } = world;
    for (const [knower, expected] of [
      [admin, "admin"],
      [colleague, "admin"],
      [member, "CREDENTIAL_WITHHELD"],
    ] as const) {
      const workflowId = await world.workflow(member, {}, { triggers });
      const secret = await secretOf(workflowId, knower);
      await takeOver(workflowId, admin);
      await send(workflowId, secret, "secrets");
      expect(await world.credentialOfNextAction()).toBe(expected);
    }
  });

  test("whose repository gets no credential says to deliver it again, or to rotate the secret", async () => {
    const { admin, member, runner } = world;
    const workflowId = await world.workflow(member, {}, { triggers });
    const secret = await secretOf(workflowId, member);
    await takeOver(workflowId, admin);
    await send(workflowId, secret, "advice");
    const work = await world.takeAction();
    const { body } = await runner.credential(work, HOST);
    expect(body.message).toMatch(EVENT_ADVICE);
    expect(body.message).not.toContain("initializer");
    await world.fail(work);
  });

  test("serves the workflow of who was given the secret", async () => {
    const { member } = world;
    const workflowId = await world.workflow(member, {}, { triggers });
    await send(workflowId, await secretOf(workflowId, member), "ship");
    expect(await world.credentialOfNextAction()).toBe("member");
  });

  test("is the word of who has it delivered again", async () => {
    const { admin, member } = world;
    const workflowId = await world.workflow(member, {}, { triggers });
    await send(workflowId, await secretOf(workflowId, member), "secrets");
    expect(await world.credentialOfNextAction()).toBe("member");
    await takeOver(workflowId, admin);
    const [{ id: triggerEventId }] = await ledgerOf({ url: server.url, token: admin.token }, workflowId);
    for (const [by, expected] of [
      [member, "CREDENTIAL_WITHHELD"],
      [admin, "admin"],
    ] as const) {
      await world.call("WorkflowService/RedeliverWorkflowTriggerEvent", { triggerEventId }, by);
      expect(await world.credentialOfNextAction()).toBe(expected);
    }
  });

  test("starts no search of an administrator's for who could have sent it", async () => {
    const { admin, member } = world;
    const repoSelector = { scmHost: HOST, repoSearchString: "team" };
    const searching = [{ pullRequest: {}, context: { repositories: { repoSelector } } }];
    const workflowId = await world.workflow(member, {}, { triggers: searching });
    const secret = await secretOf(workflowId, member);
    await takeOver(workflowId, admin);
    await send(workflowId, secret, "ship");
    const [{ workflowExecutionId }] = await ledgerOf({ url: server.url, token: admin.token }, workflowId);
    const { status } = await until(
      async () =>
        (await world.call("WorkflowService/GetWorkflowExecution", { workflowExecutionId }, admin))
          .workflowExecution,
      (execution) => execution.status.phase === "WORKFLOW_EXECUTION_PHASE_COMPLETED",
    );
    expect(status.failures).toMatchObject([
      { reason: "credential_withheld", meta: { host: HOST, set_by: member.subject.id } },
    ]);
    expect(status.failures[0].message).toMatch(EVENT_ADVICE);
  });
});

describe("a prebuild", () => {
  let days = 0;
  /** The next day's prebuild, given out. */
  async function nextPrebuild() {
    days += 1;
    const now = Date.now() + days * DAY_MS;
    await atTime(server, now, (store) => createDuePrebuilds(store, now));
    return world.runner.leaseOne({ kinds: ["WORK_KIND_PREBUILD"] });
  }
  /** What is handed to the next day's prebuild, which ends with that. */
  async function handedToPrebuild(): Promise<string> {
    const work = await nextPrebuild();
    const answer = await world.handed(work);
    await world.fail(work);
    return answer;
  }
  const configuration = (more: object = {}) => ({
    prebuildConfiguration: {
      enabled: true,
      environmentClassIds: [world.runner.environmentClassId],
      trigger: { dailySchedule: { hourUtc: 3 } },
      ...more,
    },
  });
  const update = (projectId: string, by: CredentialOwner, more: object) =>
    world.call("ProjectService/UpdateProject", { projectId, ...more }, by);
  const remove = (projectId: string) =>
    world.call("ProjectService/DeleteProject", { projectId }, world.admin);

  test("is cloned as who named itself for it, which is to adopt the source", async () => {
    const { admin, member } = world;
    const projectId = await world.project(member, "ship", configuration());
    expect(await handedToPrebuild()).toBe("member");
    await update(projectId, admin, configuration({ executor: admin.subject }));
    expect(await handedToPrebuild()).toBe("admin");
    const change = { projectId, initializer: { specs: [{ git: { remoteUri: remote("secrets") } }] } };
    const refused = await post(server, "ProjectService/UpdateProject", change, member.token);
    expect(reasonOf(refused)).toBe("PERMISSION_DENIED");
    await remove(projectId);
  });

  test("is cloned as a service account for who named that, and without one from what another chose", async () => {
    const { admin, member, robot } = world;
    const theirs = await world.project(member, "ship", configuration({ executor: robot.subject }));
    expect(await handedToPrebuild()).toBe("robot");
    await remove(theirs);
    const spec = { content: { initializer: { specs: [{ git: { remoteUri: remote("secrets") } }] } } };
    const { environment } = await world.call("EnvironmentService/CreateEnvironment", { spec }, member);
    const body = { environmentId: environment.id };
    const { project } = await world.call("ProjectService/CreateProjectFromEnvironment", body, admin);
    await update(project.id, admin, configuration());
    expect(await handedToPrebuild()).toBe("CREDENTIAL_WITHHELD");
    await update(project.id, admin, spec.content);
    expect(await handedToPrebuild()).toBe("admin");
    await remove(project.id);
  });

  test("that runs is decided by the source that it was given, whatever is set meanwhile", async () => {
    const { admin, runner } = world;
    const projectId = await world.project(admin, "ship", configuration());
    const work = await nextPrebuild();
    const elsewhere = { specs: [{ git: { remoteUri: "https://elsewhere.example.org/x.git" } }] };
    await update(projectId, admin, { initializer: elsewhere });
    expect(reasonOf(await runner.credential(work, "elsewhere.example.org"))).toBe("VALUE_UNUSABLE");
    expect(await world.handed(work)).toBe("admin");
    await succeeded(runner.finish(work));
    await remove(projectId);
  });
});

test("a project that a workflow names among others lends its word to its own action alone", async () => {
  const { admin, member } = world;
  const projectIds = [await world.project(member), await world.project(admin)];
  await world.start(await world.workflow(admin, { projects: { projectIds } }), admin);
  const answers = [await world.credentialOfNextAction(), await world.credentialOfNextAction()];
  expect(answers).toEqual(["CREDENTIAL_WITHHELD", "admin"]);
});
