import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDuePrebuilds } from "../../src/jobs/prebuilds.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { atTime } from "../harness/at-time.ts";
import { type Answer, post, repository } from "../harness/call.ts";
import {
  type CredentialFixture,
  type CredentialOwner,
  createCredentialFixture,
  overProject,
  remote,
} from "../harness/credential-fixture.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { auditTrailOf } from "../harness/host-token.ts";
import { expireLease, LONG_LEASES } from "../harness/lease.ts";
import { leaseAgentExecution } from "../harness/leased-agent-execution.ts";
import { withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { storedTexts } from "../harness/stored-texts.ts";
import { until } from "../harness/until.ts";
import { deliver } from "../harness/webhook.ts";
import {
  type Changes,
  GITHUB_PULL_REQUEST,
  GITLAB_MERGE_REQUEST,
  openedMergeRequest,
  openedPullRequest,
  type Payload,
} from "../harness/webhook-payload.ts";
import { hubSignature } from "../harness/webhook-signing.ts";

/** Every value has it, so that it can be looked for. */
const MARK = "Rumpelstiltskin-7b1e";

let server: HostedServer;
let world: CredentialFixture;
let projectId: string;
beforeAll(async () => {
  server = await startHostedServer({ args: [...LONG_LEASES, "--log-level", "debug"] });
  world = await createCredentialFixture(server);
  const policies = ["RUNNER_POLICY_FORK_WORK", "RUNNER_POLICY_FORK_EGRESS"];
  await succeeded(world.runner.call("Heartbeat", { keptPolicies: { policies } }));
  const { admin, member, other, robot } = world;
  projectId = await world.project(admin);
  const { organizationId } = world.home;
  await create({ organizationId }, { name: "ORGANIZATION" });
  await create({ organizationId }, { name: "SHARED" });
  await create({ projectId }, { name: "PROJECT", environmentVariable: undefined, filePath: "/run/key" });
  await create({ projectId }, { name: "SHARED" });
  await create({ projectId: await world.project(admin) }, { name: "OTHER_PROJECT" });
  await create({ organizationId }, { name: "API_ONLY", environmentVariable: undefined, apiOnly: true });
  for (const person of [admin, member, other]) {
    await create(
      { userId: person.subject.id },
      { name: "PERSON", value: `${MARK} ${person.subject.id}` },
      person,
    );
  }
  await create({ serviceAccountId: robot.subject.id }, { name: "ROBOT" });
});
afterAll(stopAll);

async function create(scope: object, more: object, by: CredentialOwner = world.admin): Promise<string> {
  const request = { scope, value: `${MARK} ${JSON.stringify(scope)}`, environmentVariable: true, ...more };
  return (await world.call("SecretService/CreateSecret", request, by)).secret.id;
}

/** The names of the secrets of leased work. */
const namesIn = ({ secrets }: Answer["body"]): string[] => secrets.map(({ name }: { name: string }) => name);

/** The names of the secrets of the next action, which fails then. */
async function namesOfNextAction(): Promise<string[]> {
  const work = await world.takeAction();
  await world.fail(work);
  return namesIn(work);
}

const RUNNING = "ENVIRONMENT_PHASE_RUNNING";

async function environmentFromProject(by: CredentialOwner): Promise<string> {
  const machine = { class: world.runner.environmentClassId };
  const body = { projectId, spec: { desiredPhase: RUNNING, machine } };
  return (await world.call("EnvironmentService/CreateEnvironmentFromProject", body, by)).environment.id;
}

/** Leases the work on an environment; that on those of lost attempts, which are removed, is finished. */
async function takeEnvironment(environmentId: string): Promise<Answer["body"]> {
  for (;;) {
    const work = await world.runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] });
    if (work.environment.environment.id === environmentId) return work;
    await succeeded(world.runner.finish(work));
  }
}

describe("an action over a project", () => {
  test("gets the secrets of the organization, of the project and of the person it runs as, the nearest of a name", async () => {
    const { admin, member } = world;
    for (const person of [admin, member]) {
      await world.start(await world.workflow(person, overProject(projectId)), person);
      const work = await world.takeAction();
      await world.fail(work);
      expect(work.secrets).toEqual([
        secret("ORGANIZATION", { organizationId: world.home.organizationId }),
        { ...secret("PERSON", {}), value: `${MARK} ${person.subject.id}` },
        { ...secret("PROJECT", { projectId }), environmentVariable: undefined, filePath: "/run/key" },
        secret("SHARED", { projectId }),
      ]);
    }
  });

  test("gets those of the service account that it runs as, and none of a person", async () => {
    const { admin, robot } = world;
    const workflowId = await world.workflow(admin, overProject(projectId), { executor: robot.subject });
    await world.start(workflowId, admin);
    expect(await namesOfNextAction()).toEqual(["ORGANIZATION", "PROJECT", "ROBOT", "SHARED"]);
  });

  test("gets the new value with the next attempt, and no more what was deleted", async () => {
    const { admin } = world;
    const updated = await create({ projectId }, { name: "UPDATED" });
    const deleted = await create({ projectId }, { name: "WILL_BE_DELETED" });
    await world.start(await world.workflow(admin, overProject(projectId)), admin);
    const first = await world.takeAction();
    expect(namesIn(first)).toEqual(expect.arrayContaining(["UPDATED", "WILL_BE_DELETED"]));
    await world.call("SecretService/UpdateSecretValue", { secretId: updated, value: `${MARK} new` }, admin);
    await world.call("SecretService/DeleteSecret", { secretId: deleted }, admin);
    await expireLease(server, first);
    const second = await world.takeAction();
    await world.fail(second);
    expect(second.attempt).toBe(2);
    const values = Object.fromEntries(
      second.secrets.map(({ name, value }: { name: string; value: string }) => [name, value]),
    );
    expect([values.UPDATED, values.WILL_BE_DELETED]).toEqual([`${MARK} new`, undefined]);
    await world.call("SecretService/DeleteSecret", { secretId: updated }, admin);
  });

  test("gets one with a credential proxy without a mount, so that runners that know none give it to nobody", async () => {
    const { admin } = world;
    const credentialProxy = { targetHosts: ["a.example"], header: "X-Key" };
    const mounts = [
      {},
      { environmentVariable: undefined },
      { environmentVariable: undefined, apiOnly: true },
    ];
    const file = { environmentVariable: undefined, filePath: "/run/proxied" };
    const ids: string[] = [];
    for (const [at, mount] of [...mounts, file].entries())
      ids.push(
        await create({ projectId }, { name: `ZZ_${at}`, value: `${MARK} ${at}`, credentialProxy, ...mount }),
      );
    await world.start(await world.workflow(admin, overProject(projectId)), admin);
    const work = await world.takeAction();
    await world.fail(work);
    const placeholders = [{ environmentVariable: true }, {}, {}, { filePath: "/run/proxied" }];
    expect(work.secrets.filter(({ name }: { name: string }) => name.startsWith("ZZ_"))).toEqual(
      placeholders.map((placeholder, at) => ({
        secretId: ids[at],
        name: `ZZ_${at}`,
        value: `${MARK} ${at}`,
        credentialProxy: { ...credentialProxy, ...placeholder },
      })),
    );
    for (const secretId of ids) await world.call("SecretService/DeleteSecret", { secretId }, admin);
  });

  test("leaves one row in the record, which tells who got which secrets for what, and no value", async () => {
    const { admin, runner } = world;
    await world.start(await world.workflow(admin, overProject(projectId)), admin);
    const work = await world.takeAction();
    await world.fail(work);
    const { rows, kinds } = await auditTrailOf(server, work.action.environment.id);
    const handed = rows.filter(({ operation }) => operation === "secret/handed_out");
    expect(handed).toHaveLength(1);
    expect(handed[0]).toMatchObject({ actor_id: runner.runnerId, subject_type: "environment" });
    const recorded = JSON.stringify(handed[0]?.diff);
    for (const { secretId } of work.secrets) expect(recorded).toContain(secretId);
    for (const id of [runner.runnerId, work.leaseId, work.action.actionId]) expect(recorded).toContain(id);
    const filter = { subjectIds: [work.action.environment.id], actions: ["secret/handed_out"] };
    const { entries } = await world.call("EventService/ListAuditLogs", { filter }, admin);
    const kind = "AUDIT_LOG_ENTRY_KIND_CREDENTIAL_ACCESS";
    expect(entries).toMatchObject([{ actorId: runner.runnerId, action: "secret/handed_out", kind }]);
    // To hand out changes nothing.
    expect(kinds).toEqual(["created", "deleted"]);
  });
});

const secret = (name: string, scope: object) => ({
  secretId: expect.any(String),
  name,
  value: `${MARK} ${JSON.stringify(scope)}`,
  environmentVariable: true,
});

test("work over a repository gets no project's secrets", async () => {
  const { member } = world;
  const context = { repositories: { repositoryUrls: { repoUrls: [remote("ship")] } } };
  await world.start(await world.workflow(member, context), member);
  expect(await namesOfNextAction()).toEqual(["ORGANIZATION", "PERSON", "SHARED"]);
});

describe("an environment", () => {
  test("gets its secrets each time it is to run, and none where it is to stop", async () => {
    const { member, runner } = world;
    const environmentId = await environmentFromProject(member);
    for (const operation of ["StopEnvironment", "StartEnvironment"]) {
      const work = await takeEnvironment(environmentId);
      const isWantedUp = work.environment.environment.spec.desiredPhase === RUNNING;
      expect(namesIn(work)).toEqual(isWantedUp ? ["ORGANIZATION", "PERSON", "PROJECT", "SHARED"] : []);
      await succeeded(runner.finish(work));
      await world.call(`EnvironmentService/${operation}`, { environmentId }, member);
    }
    const again = await takeEnvironment(environmentId);
    expect(namesIn(again)).toEqual(["ORGANIZATION", "PERSON", "PROJECT", "SHARED"]);
    await succeeded(runner.finish(again));
  });

  test("of a person gives an agent that somebody else started in it none of that person's", async () => {
    const { admin, member, runner } = world;
    const environmentId = await environmentFromProject(member);
    await succeeded(runner.finish(await takeEnvironment(environmentId)));
    for (const [by, names] of [
      [member, ["ORGANIZATION", "PERSON", "PROJECT", "SHARED"]],
      [admin, ["ORGANIZATION", "PROJECT", "SHARED"]],
    ] as const) {
      const body = { codeContext: { environmentId }, runnerId: runner.runnerId };
      const { agentExecutionId } = await world.call("AgentService/StartAgent", body, by);
      const run = await leaseAgentExecution(runner, agentExecutionId);
      expect(namesIn(run)).toEqual(names);
      await world.fail(run);
    }
  });

  test("of somebody whose account is blocked gives its work none", async () => {
    const { other, runner } = world;
    const environmentId = await environmentFromProject(other);
    await succeeded(runner.finish(await takeEnvironment(environmentId)));
    await world.call("EnvironmentService/StopEnvironment", { environmentId }, other);
    await succeeded(runner.finish(await takeEnvironment(environmentId)));
    await world.call("EnvironmentService/StartEnvironment", { environmentId }, other);
    // As if the block and the lease had met.
    await withServerData(server, (store) =>
      store.write(SYSTEM, "test", ({ db, now }) =>
        builderOf(db)
          .updateTable("account")
          .set({ blocked_at: now })
          .where("id", "=", other.accountId)
          .execute(),
      ),
    );
    const work = await takeEnvironment(environmentId);
    expect([work.environment.environment.spec.desiredPhase, namesIn(work)]).toEqual([RUNNING, []]);
  });
});

test("a prebuild gets none", async () => {
  const { admin, runner } = world;
  const prebuildConfiguration = {
    enabled: true,
    environmentClassIds: [runner.environmentClassId],
    trigger: { dailySchedule: { hourUtc: 3 } },
  };
  await create(
    { projectId: await world.project(admin, "ship", { prebuildConfiguration }) },
    { name: "PREBUILT" },
  );
  const tomorrow = Date.now() + 24 * 3_600_000;
  await atTime(server, tomorrow, (store) => createDuePrebuilds(store, tomorrow));
  const work = await runner.leaseOne({ kinds: ["WORK_KIND_PREBUILD"] });
  expect(namesIn(work)).toEqual([]);
  await succeeded(runner.finish(work));
});

describe("the event of a pull request", () => {
  const GITHUB_URL = "https://git.example.org/Lantern-Works/Harbour.git";
  const SAME: Changes = { "pull_request.head.repo.id": 71004 };

  /** A workflow over every repository that posts to it. */
  async function listening() {
    const workflowId = await world.workflow(
      world.admin,
      {},
      {
        // Nobody is asked about those from forks.
        triggers: [
          {
            pullRequest: { events: [], forkWork: { approval: "FORK_APPROVAL_NOT_REQUIRED" } },
            context: { fromTrigger: {} },
          },
        ],
        report: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] },
      },
    );
    const { secret: key } = await world.call(
      "WorkflowService/GetWorkflowWebhookSecret",
      { workflowId },
      world.admin,
    );
    return {
      workflowId,
      async send(payload: Payload, isMerge = false) {
        const body = Buffer.from(JSON.stringify(payload));
        const headers = isMerge
          ? { ...GITLAB_MERGE_REQUEST, "x-gitlab-token": key }
          : { ...GITHUB_PULL_REQUEST, ...hubSignature(key, body) };
        expect((await deliver(server, workflowId, body, headers)).status).toBe(202);
      },
    };
  }

  test.each<[string, boolean, Payload, boolean]>([
    ["of GitHub from the same repository", true, openedPullRequest(SAME), false],
    ["of GitHub from a fork", false, openedPullRequest(), false],
    ["of GitHub whose fork was deleted", false, openedPullRequest({ "pull_request.head.repo": null }), false],
    [
      "of GitHub that does not tell",
      false,
      openedPullRequest({ ...SAME, "repository.id": undefined }),
      false,
    ],
    [
      "of GitHub that tells it in a wrong form",
      false,
      openedPullRequest({ ...SAME, "repository.id": "71004" }),
      false,
    ],
    ["of GitLab from the same project", true, openedMergeRequest(), true],
    ["of GitLab from a fork", false, openedMergeRequest({ "object_attributes.source_project_id": 65 }), true],
    [
      "of GitLab that does not tell",
      false,
      openedMergeRequest({ "object_attributes.target_project_id": null }),
      true,
    ],
  ])("%s: whether its work gets secrets is %s", async (_, may, payload, isMerge) => {
    const names = may ? ["ORGANIZATION", "PERSON", "SHARED"] : [];
    const { send } = await listening();
    await send(payload, isMerge);
    const work = await world.takeAction();
    expect(namesIn(work)).toEqual(names);
    expect(work.action.environment.metadata.secretsWithheld).toBe(!may);
    expect(work.environmentToken).toMatch(may ? /^cr_env_/ : /^$/);
    expect(work.action.environment.metadata.forkEgress).toBe(may ? undefined : "FORK_EGRESS_SOURCES");
    await expireLease(server, work);
    const again = await world.takeAction();
    expect([again.attempt, namesIn(again)]).toEqual([2, names]);
    await world.fail(again);
    // The report.
    expect(await namesOfNextAction()).toEqual(names);
  });

  test("from a fork gives none when it is delivered again, and none to a retry", async () => {
    const { admin } = world;
    const { workflowId, send } = await listening();
    await send(openedPullRequest());
    for (let at = 0; at < 2; at++) expect(await namesOfNextAction()).toEqual([]);
    const filter = { workflowIds: [workflowId] };
    const { triggerEvents } = await world.call(
      "WorkflowService/ListWorkflowTriggerEvents",
      { filter },
      admin,
    );
    const triggerEventId = triggerEvents[0].id;
    await world.call("WorkflowService/RedeliverWorkflowTriggerEvent", { triggerEventId }, admin);
    for (let at = 0; at < 2; at++) expect(await namesOfNextAction()).toEqual([]);
    const executions = await until(
      async () =>
        (await world.call("WorkflowService/ListWorkflowExecutions", { filter }, admin)).workflowExecutions,
      (all) => all.length === 2 && all.every(({ status }: Answer["body"]) => /COMPLETED/.test(status.phase)),
    );
    expect(executions.map(({ spec }: Answer["body"]) => spec.trigger.pullRequest.origin)).toEqual([
      "ORIGIN_FORK",
      "ORIGIN_FORK",
    ]);
    const workflowExecutionId = executions[0].id;
    await world.call("WorkflowService/RetryFailedActions", { workflowExecutionId }, admin);
    expect(await namesOfNextAction()).toEqual([]);
    expect(await namesOfNextAction()).toEqual([]);
  });

  test("from a fork gives none to an agent in its environment, no matter who starts it", async () => {
    const { admin, runner } = world;
    const { send } = await listening();
    await send(openedPullRequest());
    const work = await world.takeAction();
    await succeeded(runner.report(work, { environment: { phase: RUNNING } }));
    const codeContext = { environmentId: work.action.environment.id };
    const started = await world.call(
      "AgentService/StartAgent",
      { codeContext, runnerId: runner.runnerId },
      admin,
    );
    const run = await leaseAgentExecution(runner, started.agentExecutionId);
    expect(namesIn(run)).toEqual([]);
    await world.fail(run);
    await world.fail(work);
    expect(await namesOfNextAction()).toEqual([]);
  });

  test("does not count where a person starts the same repository", async () => {
    const { admin } = world;
    const context = { repositories: { repositoryUrls: { repoUrls: [GITHUB_URL] } } };
    await world.start(await world.workflow(admin, context), admin);
    expect(await namesOfNextAction()).toEqual(["ORGANIZATION", "PERSON", "SHARED"]);
  });
});

test("another organization's runner gets none of this one's", async () => {
  const { token } = await addOrganization(server, "Elsewhere");
  const runner = await registerRunner(server, { token });
  const spec = { desiredPhase: RUNNING, content: { initializer: repository(remote("ship")) } };
  await world.call("EnvironmentService/CreateEnvironment", { spec }, { token });
  const work = await runner.leaseOne();
  expect([work.environment.environment.spec.desiredPhase, namesIn(work)]).toEqual([RUNNING, []]);
});

test("work whose secret does not open fails, and is not done without it", async () => {
  const { admin } = world;
  const damaged = await world.project(admin);
  const id = await create({ projectId: damaged }, { name: "DAMAGED" });
  await withServerData(server, (store) =>
    store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db)
        .updateTable("secret")
        .set({ sealed: Buffer.alloc(64) })
        .where("id", "=", id)
        .execute(),
    ),
  );
  const workflowId = await world.workflow(admin, overProject(damaged));
  const { workflowExecution } = await world.start(workflowId, admin);
  expect(await world.runner.lease({ kinds: ["WORK_KIND_ACTION"] })).toEqual([]);
  const workflowExecutionId = workflowExecution.id;
  const { status } = (
    await world.call("WorkflowService/GetWorkflowExecution", { workflowExecutionId }, admin)
  ).workflowExecution;
  expect(JSON.stringify(status.failures)).toContain("work_unusable");
  await until(server.logText, (text) => text.includes(`the secret ${id} does not open`));
  await world.call("SecretService/DeleteSecret", { secretId: id }, admin);
});

test("the leases of one call have 4 MiB together at most, however large their secrets are", async () => {
  const { admin, runner } = world;
  const large = await world.project(admin);
  for (let at = 0; at < 25; at++)
    await create({ projectId: large }, { name: `LARGE_${at}`, value: "x".repeat(10_240) });
  const limits = { maxParallel: 20, maxTotal: 20 };
  const action = { limits, steps: [{ task: { command: "true" } }] };
  for (let at = 0; at < 20; at++) {
    await world.start(await world.workflow(admin, overProject(large), { action }), admin);
  }
  const { status, body } = await runner.call("LeaseWork", {
    maxLeases: 32,
    wait: "60s",
    kinds: ["WORK_KIND_ACTION"],
  });
  expect(status).toBe(200);
  expect(body.works.length).toBeGreaterThan(10);
  expect(body.works.length).toBeLessThan(17);
  for (const work of body.works) expect(work.secrets).toHaveLength(25 + 3);
});

test("no value is in the database, in the log, or in what is recorded, also of a lease under an idempotency key", async () => {
  const { admin, runner } = world;
  const filter = { kinds: ["WORK_KIND_ENVIRONMENT"] };
  const environmentId = await environmentFromProject(admin);
  const lease = { maxLeases: 32, wait: "20s", ...filter };
  const key = { "idempotency-key": "one" };
  const { works } = (await post(server, "WorkService/LeaseWork", lease, runner.token, key)).body;
  const work = works.find(({ environment }: Answer["body"]) => environment.environment.id === environmentId);
  expect(JSON.stringify(work.secrets)).toContain(MARK);
  for (const [place, text] of await storedTexts(server.dataDir)) {
    expect([place, text.includes(MARK)]).toEqual([place, false]);
  }
  expect(server.logText()).not.toContain(MARK);
});
