import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { doAction, type FakeRunner, type Leased, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { expireLease, LONG_LEASES } from "../harness/lease.ts";
import { organizationWithPolicies } from "../harness/policies.ts";
import { type ReachableServer, startHostedServer, startServer, stopAll } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
afterAll(stopAll);

const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];
const LOST = [409, "aborted", "LEASE_LOST"];
const bytes = (text: string) => Buffer.from(text).toString("base64");

let made = 0;
/** An organization of its own with a runner, so that no other test takes its work. */
async function harbour(options: { local?: boolean } = {}) {
  made += 1;
  const organization = await organizationWithPolicies(server, `harbour-${made}`);
  const { token } = organization.administrator;
  const runner = await registerRunner(server, { token, ...options });
  return { ...organization, token, runner };
}

/** Every operation on a lease. */
const allOn = (runner: FakeRunner, work: Leased) => [
  runner.renew(work),
  runner.report(work, { steps: [{ stepIndex: 0, state: "STATE_RUNNING" }] }),
  runner.finish(work),
  runner.credential(work, "git.example.org"),
];

describe("work", () => {
  test("is done from its lease to its end, and what it printed can be read", async () => {
    const { token, runner } = await harbour();
    const run = await startExecution(server, { token, steps: [task("echo one"), task("echo two")] });
    const work = await runner.leaseOne();
    const logs = [
      { stepIndex: 0, data: bytes("one\n") },
      { stepIndex: 1, data: bytes("two\n") },
    ];
    await succeeded(runner.report(work, { logs }));
    await succeeded(runner.report(work, { logs }));
    await doAction(runner, work);
    expect((await run.execution()).status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_COMPLETED",
      doneActionCount: 1,
    });
    const first = await post(
      server,
      "WorkflowService/StreamActionLogs",
      { workflowExecutionActionId: work.action.actionId, stepIndex: 1 },
      token,
    );
    expect(first.body).toMatchObject({ stepIndex: 1, offset: "0", data: bytes("two\n"), attempt: 1 });
  });

  test("of one action is given to one of many runners that ask at the same time", async () => {
    const { token, runner } = await harbour();
    const runners = [
      runner,
      await registerRunner(server, { token }),
      await registerRunner(server, { token }),
    ];
    await startExecution(server, { token });
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => runners[index % 3]?.lease({ maxLeases: 5 })),
    );
    expect(answers.flat()).toHaveLength(1);
  });

  test("is given out at most as much as was asked for, of the kinds and classes that were", async () => {
    const { token, runner } = await harbour();
    await startExecution(server, { token, actions: 5, environmentClassId: runner.environmentClassId });
    const other = await registerRunner(server, { token });
    expect(await other.lease({ maxLeases: 5 })).toEqual([]);
    expect(await runner.lease({ maxLeases: 5, kinds: ["WORK_KIND_ENVIRONMENT"] })).toEqual([]);
    const foreignClass = { environmentClassIds: [other.environmentClassId] };
    expect(await runner.lease({ maxLeases: 5, ...foreignClass })).toEqual([]);
    expect(await runner.lease({ maxLeases: 2 })).toHaveLength(2);
    const own = { kinds: ["WORK_KIND_ACTION"], environmentClassIds: [runner.environmentClassId] };
    expect(await runner.lease({ maxLeases: 32, ...own })).toHaveLength(3);
  });

  test("whose runner falls silent goes to another, and what the first says late is refused", async () => {
    const { token, runner } = await harbour();
    const run = await startExecution(server, { token });
    const old = await runner.leaseOne();
    const second = await registerRunner(server, { token });
    expect(await second.lease()).toEqual([]);
    await expireLease(server, old);
    const again = await second.leaseOne();
    expect([again.leaseId, again.fence, again.attempt]).toEqual([old.leaseId, "2", 2]);
    for (const answer of await Promise.all(allOn(runner, old))) expect(refusal(answer)).toEqual(LOST);
    await doAction(second, again);
    expect((await run.actions())[0].status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_ACTION_PHASE_DONE",
      failures: [],
      warnings: [{ reason: "attempt_lost", meta: { runner_id: runner.runnerId, attempt: "1" } }],
    });
  });

  test("is leased for as long as the server is configured, and is another's when that time is over", async () => {
    const hasty = await startHostedServer({ args: ["--lease-duration", "5"] });
    const [first, second] = [await registerRunner(hasty), await registerRunner(hasty)];
    await startExecution(hasty);
    const asked = Date.now();
    const old = await first.leaseOne();
    const endsAt = Date.parse(old.expiresAt);
    expect([endsAt >= asked + 5_000, endsAt <= Date.now() + 5_000]).toEqual([true, true]);
    const again = await second.leaseOne();
    expect(Date.now()).toBeGreaterThanOrEqual(endsAt);
    expect([again.leaseId, again.fence]).toEqual([old.leaseId, "2"]);
  });

  test("is lost to everybody but the runner and the fence that hold it", async () => {
    const { token, runner } = await harbour();
    const foreign = (await harbour()).runner;
    const fellow = await registerRunner(server, { token });
    await startExecution(server, { token });
    const work = await runner.leaseOne();
    const strangers = [
      ...allOn(foreign, work),
      ...allOn(fellow, work),
      ...allOn(runner, { ...work, fence: "2" }),
      ...allOn(runner, { ...work, leaseId: work.action.actionId }),
    ];
    for (const answer of await Promise.all(strangers)) expect(refusal(answer)).toEqual(LOST);
    await doAction(runner, work);
    for (const answer of await Promise.all(allOn(runner, work))) expect(refusal(answer)).toEqual(LOST);
  });
});

describe("a report", () => {
  test("is taken whole or not at all, and harmless when it is repeated", async () => {
    const { token, runner } = await harbour();
    const run = await startExecution(server, { token, steps: [task("a"), task("b")] });
    const work = await runner.leaseOne();
    const running = { steps: [{ stepIndex: 0, state: "STATE_RUNNING" }] };
    const broken: [object, number, string][] = [
      [{ ...running, logs: [{ stepIndex: 0, offset: "1", data: "AA==" }] }, 400, "VALUE_UNUSABLE"],
      [{ ...running, logs: [{ stepIndex: 2, data: "AA==" }] }, 400, "VALUE_UNUSABLE"],
      [{ steps: [...running.steps, { stepIndex: 2, state: "STATE_RUNNING" }] }, 400, "VALUE_UNUSABLE"],
      [{ steps: [...running.steps, { stepIndex: 1 }] }, 400, "VALUE_UNUSABLE"],
      [{ steps: [...running.steps, { stepIndex: 1, state: "STATE_RUNNING" }] }, 400, "PHASE_UNSUITABLE"],
      [{ ...running, environment: { phase: "ENVIRONMENT_PHASE_DELETED" } }, 400, "PHASE_UNSUITABLE"],
    ];
    const pending = async () => (await run.actions())[0].status.stepStatuses[0].phase;
    for (const [progress, status, reason] of broken) {
      const answer = await runner.report(work, progress);
      expect([answer.status, reasonOf(answer)]).toEqual([status, reason]);
      expect(await pending()).toBe("STEP_PHASE_PENDING");
    }
    for (let time = 0; time < 2; time += 1) {
      await succeeded(runner.report(work, { ...running, logs: [{ stepIndex: 0, data: bytes("hello") }] }));
      expect(await pending()).toBe("STEP_PHASE_RUNNING");
    }
  });

  test("of a failed step fails the action, and the step after it is never run", async () => {
    const { token, runner } = await harbour();
    const run = await startExecution(server, { token, steps: [task("false"), task("true")] });
    const work = await runner.leaseOne();
    const failure = { reason: "command_failed", message: "the command ended with 1", retriable: false };
    const steps = [
      { stepIndex: 0, state: "STATE_RUNNING" },
      { stepIndex: 0, state: "STATE_FAILED", failure },
    ];
    expect(await succeeded(runner.report(work, { steps }))).toMatchObject({ stop: true });
    await succeeded(
      runner.finish(work, "OUTCOME_FAILED", { failure, warnings: [{ reason: "slow_disk", message: "m" }] }),
    );
    expect((await run.actions())[0].status).toMatchObject({
      failures: [{ code: "WORKFLOW_ERROR_CODE_ENVIRONMENT_ERROR", reason: "command_failed" }],
      warnings: [{ reason: "slow_disk" }],
      stepStatuses: [{ phase: "STEP_PHASE_FAILED" }, { phase: "STEP_PHASE_CANCELLED" }],
    });
  });
});

describe("what travels with a lease", () => {
  test("is a token by which the environment itself calls, until the work ends", async () => {
    const { token, runner } = await harbour();
    await startExecution(server, { token });
    const work = await runner.leaseOne();
    const who = () => post(server, "IdentityService/GetAuthenticatedIdentity", {}, work.environmentToken);
    const { id } = work.action.environment;
    expect((await who()).body.subject).toEqual({ id, principal: "PRINCIPAL_ENVIRONMENT" });
    await doAction(runner, work);
    expect((await who()).status).toBe(401);
  });

  test("are the policies that only the runner can keep", async () => {
    const { token, runner, set, call, organizationId } = await harbour();
    const { body } = await call("SecurityService/CreateSecurityPolicy", {
      organizationId,
      metadata: { name: "No tunnels" },
      spec: { executables: { rules: [{ path: "/usr/bin/ssh", effect: "EFFECT_BLOCK" }] } },
    });
    await set({
      vetoExecPolicy: { enabled: true, executables: ["curl"] },
      vetoFilePolicy: { paths: { entries: [{ path: "/etc/shadow" }] } },
      securityAgentPolicy: { customAgents: [{ id: "watch", enabled: true }] },
      defaultEnvironmentImage: "registry.example.org/base:1",
      agentPolicy: { commandDenyList: ["rm"] },
      egress: { sets: ["EGRESS_HOST_SET_SERVICE"], hosts: [{ host: "a.example" }] },
      securityPolicyId: body.securityPolicy.id,
    });
    await startExecution(server, { token });
    await call("EnvironmentService/CreateEnvironment", {});
    const { policies } = (await call("OrganizationService/GetOrganizationPolicies", { organizationId })).body;
    for (const work of await runner.lease({ maxLeases: 2 })) {
      expect(work.policies).toEqual({
        vetoExecPolicy: policies.vetoExecPolicy,
        vetoFilePolicy: policies.vetoFilePolicy,
        securityAgentPolicy: policies.securityAgentPolicy,
        defaultEnvironmentImage: "registry.example.org/base:1",
        agentPolicy: policies.agentPolicy,
        egress: policies.egress,
        securityPolicy: body.securityPolicy,
      });
      expect(work.policies.vetoExecPolicy.safelist).toContain("sh");
    }
  });
});

describe("a local runner", () => {
  test("takes what is for local runners and for any, and nothing while the policy forbids it", async () => {
    const { token, runner, set, call } = await harbour({ local: true });
    const remote = await registerRunner(server, { token });
    const { project } = (
      await call("ProjectService/CreateProject", { initializer: repository("https://git.example.org/a/b") })
    ).body;
    await call("ProjectService/UpdateProjectEnvironmentClasses", {
      projectId: project.id,
      projectEnvironmentClasses: [{ localRunner: true }],
    });
    await set({ allowLocalRunners: false });
    await startExecution(server, { token });
    expect(await runner.lease()).toEqual([]);
    await set({ allowLocalRunners: true });
    expect((await runner.lease()).map(({ action }) => action !== undefined)).toEqual([true]);
    const { environment } = (
      await call("EnvironmentService/CreateEnvironmentFromProject", { projectId: project.id })
    ).body;
    expect(await remote.lease()).toEqual([]);
    const [work] = await runner.lease();
    expect(work.environment.environment).toMatchObject({
      id: environment.id,
      metadata: { runnerId: runner.runnerId },
    });
    await set({ allowLocalRunners: false });
    await succeeded(runner.finish(work));
  });

  test("makes its class one that takes no environments while the policy forbids it", async () => {
    const { runner, set, call } = await harbour({ local: true });
    await set({ allowLocalRunners: false });
    const spec = { machine: { class: runner.environmentClassId } };
    const refused = await call("EnvironmentService/CreateEnvironment", { spec });
    expect([refused.status, reasonOf(refused)]).toEqual([400, "POLICY_DENIED"]);
    const taking = async (canCreateEnvironments: boolean) =>
      (await call("RunnerConfigurationService/ListEnvironmentClasses", { filter: { canCreateEnvironments } }))
        .body.environmentClasses.length;
    expect([await taking(true), await taking(false)]).toEqual([0, 1]);
  });
});

describe("a runner that waits", () => {
  test("keeps nothing that it does not take: work queued after it left goes to the next", async () => {
    const { token, runner } = await harbour();
    const leaving = new AbortController();
    const left = fetch(`${server.url}/api/runner.v1.WorkService/LeaseWork`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${runner.token}` },
      body: JSON.stringify({ maxLeases: 1, wait: "60s" }),
      signal: leaving.signal,
    });
    leaving.abort();
    await expect(left).rejects.toThrow();
    await startExecution(server, { token });
    expect((await runner.leaseOne()).attempt).toBe(1);
  });

  test("is sent home with nothing when the server is asked to stop", async () => {
    const stopping = await startServer();
    const runner = await registerRunner(stopping);
    const answer = runner.call("LeaseWork", { maxLeases: 1, wait: "60s" });
    // The runner waits once the server has answered a later call of it.
    await runner.call("Heartbeat");
    expect(await stopping.stop()).toBe(0);
    expect([(await answer).status, (await answer).body]).toEqual([200, { works: [] }]);
  });
});
