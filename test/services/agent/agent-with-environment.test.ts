import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import { type AgentWork, type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import {
  AgentExecution_Phase as Phase,
  AgentExecutionFailureReason as Reason,
} from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { unregisterAgent } from "../../../src/services/agent/agent-registry.ts";
import { findEnvironment } from "../../../src/store/environment/environment.ts";
import { queueEnvironmentWork } from "../../../src/store/environment/environment-work.ts";
import { AGENT_WITH_ENVIRONMENT_LEVEL } from "../../../src/store/feature-level.ts";
import { findTokens } from "../../../src/store/identity/token.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { AGENT_WITH_ENVIRONMENT, stopWork } from "../../../src/store/runner/work.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { LEASE_MS, type RegisteredRunner, registeredRunner, tokenIdOf } from "../runner/work-service.ts";
import { type Services, servicesOf } from "../services.ts";
import { addAgent, type Runs, runsOn } from "./agents.ts";

let made: TestStore;
let caller: Caller;
let own: Services;
let runner: RegisteredRunner;
let runs: Runs;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  own = servicesOf(made, caller);
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  await addAgent(made, null, { isDefault: true });
});
afterEach(() => made.close());

/** The works that a runner is given that takes agent executions together with their environments. */
const leaseTogether = async (...kinds: WorkKind[]) => {
  const request = { maxLeases: 8, kinds, agentsWithEnvironment: true, wait: { seconds: 0n } };
  return (await runner.leaseWork(request)).works;
};

/** Leases the one agent execution that there is, with its environment. */
async function takeTogether(): Promise<Work> {
  const [given] = await leaseTogether(WorkKind.AGENT);
  if (given?.work.case !== "agent") throw new Error("no agent execution was leased");
  return given;
}
const agentWorkIn = (given: Work) => given.work.value as AgentWork;

const report = (given: Work, progress: object = {}) =>
  runs.work.reportAgent({ ...runs.named(given), ...progress });
const UP = { environment: { phase: EnvironmentPhase.RUNNING }, state: State.WAITING };

/** Ends the leases as the server does when nothing is heard of a runner. */
async function expireLeases(): Promise<void> {
  made.clock.now += LEASE_MS;
  await endExpiredLeases(made.store, made.clock.now);
}

async function stateOf(id: string) {
  const { status } = (await runs.get(id)) ?? {};
  const environmentId = status?.usedEnvironments[0]?.environmentId ?? "";
  const { environment } = await own.environments.getEnvironment({ environmentId }).catch(() => ({}) as never);
  const { failureReason, failureMessage } = status ?? {};
  return {
    phase: status?.phase,
    environment: environment?.status?.phase,
    wanted: environment?.spec?.desiredPhase,
    ...(failureMessage !== "" && { failureReason, failureMessage }),
  };
}
const environmentIdOf = async (id: string) =>
  (await runs.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
const BEING_MADE = {
  phase: Phase.PENDING,
  environment: EnvironmentPhase.CREATING,
  wanted: EnvironmentPhase.RUNNING,
};

/** The works of any kind in the queue, leased or not. */
const queue = () => builderOf(made.store.reader).selectFrom("work").select(["kind", "leased_by"]).execute();

describe("a run in a new environment, for a runner that takes both together", () => {
  test("is one lease, and begins with the report that the environment is running", async () => {
    const id = await runs.start({});
    expect(await leaseTogether(WorkKind.ENVIRONMENT)).toEqual([]);
    const given = await takeTogether();
    expect(given).toMatchObject({ attempt: 1, fence: 1n });
    const { agentExecution, environment, prebuildId } = agentWorkIn(given);
    expect([agentExecution?.id, prebuildId]).toEqual([id, ""]);
    expect(environment?.status?.phase).toBe(EnvironmentPhase.CREATING);
    expect(environment?.metadata?.runnerId).toBe(runner.runnerId);
    expect(given.environmentToken).not.toBe("");
    expect(await stateOf(id)).toEqual(BEING_MADE);
    expect(await queue()).toEqual([{ kind: WorkKind.AGENT, leased_by: runner.runnerId }]);

    expect(await report(given, UP)).toMatchObject({ stop: false });
    const up = { phase: Phase.WAITING_FOR_INPUT, environment: EnvironmentPhase.RUNNING };
    expect(await stateOf(id)).toMatchObject(up);
    // To repeat it is harmless.
    await report(given, UP);
    expect(await stateOf(id)).toMatchObject(up);
    expect(await leaseTogether()).toEqual([]);
  });

  test("begins with a report of progress too", async () => {
    const id = await runs.start({});
    const given = await takeTogether();
    await runner.reportProgress({ ...runs.named(given), environment: UP.environment });
    expect(await stateOf(id)).toMatchObject({ phase: Phase.RUNNING, environment: EnvironmentPhase.RUNNING });
  });

  test("reports nothing of its agent before that", async () => {
    const id = await runs.start({});
    const given = await takeTogether();
    await expect(report(given, { state: State.WAITING })).rejects.toMatchObject({
      reason: ErrorReason.PHASE_UNSUITABLE,
    });
    await expect(runs.finish(given)).rejects.toMatchObject({ reason: ErrorReason.PHASE_UNSUITABLE });
    expect(await stateOf(id)).toEqual(BEING_MADE);
  });

  test("takes turns with other work, and those that are not together stay two leases", async () => {
    const id = await runs.start({});
    await own.environments.createEnvironment({ spec: {} });
    expect(await leaseTogether(WorkKind.ENVIRONMENT)).toHaveLength(1);
    const given = await takeTogether();
    await report(given, UP);
    const second = await runs.start({
      codeContext: { context: { case: "environmentId", value: await environmentIdOf(id) } },
    });
    expect(agentWorkIn(await takeTogether()).agentExecution?.id).toBe(second);
  });
});

describe("a run that was leased together with its environment", () => {
  test("stays with the runner on whose machine the environment is", async () => {
    const id = await runs.start({});
    await report(await takeTogether(), UP);
    await expireLeases();
    const other = await registeredRunner(made, caller, { name: "south" });
    const request = { maxLeases: 8, agentsWithEnvironment: true, wait: { seconds: 0n } };
    expect((await other.leaseWork(request)).works).toEqual([]);
    expect(agentWorkIn(await takeTogether()).agentExecution?.id).toBe(id);
  });

  test("has a token of its own, which goes with it and leaves those of other runs", async () => {
    const first = await runs.start({});
    const given = await takeTogether();
    await report(given, UP);
    const environmentId = await environmentIdOf(first);
    await runs.start({ codeContext: { context: { case: "environmentId", value: environmentId } } });
    const second = await takeTogether();
    const tokens = () => findTokens(made.store.reader, caller, "environment", environmentId);
    expect(new Set([given.environmentToken, second.environmentToken]).size).toBe(2);
    expect(await tokens()).toHaveLength(2);
    await runs.finish(given);
    const [left, ...others] = await tokens();
    expect([left?.id, others]).toEqual([await tokenIdOf(made, second.environmentToken), []]);
  });
});

test("other runners lease the environment first and the run once that is up", async () => {
  const id = await runs.start({});
  expect(await runs.lease(WorkKind.AGENT)).toEqual([]);
  await runs.bringUp();
  expect(await stateOf(id)).toEqual({ ...BEING_MADE, environment: EnvironmentPhase.RUNNING });
  const given = await runs.takeOn();
  expect(agentWorkIn(given).environment?.status?.phase).toBe(EnvironmentPhase.RUNNING);
  expect((await stateOf(id)).phase).toBe(Phase.RUNNING);
  expect(await leaseTogether()).toEqual([]);
});

test("while older servers run, the environment is queued as they know it", async () => {
  const id = await runs.start({});
  expect(await queue()).toEqual([{ kind: AGENT_WITH_ENVIRONMENT, leased_by: null }]);
  const environmentId = await environmentIdOf(id);
  await made.store.write(SYSTEM, "test", async (tx) => {
    const environment = await findEnvironment(tx.db, caller, environmentId);
    if (!environment) throw new Error("there is no environment");
    await stopWork(tx, caller, WorkKind.ENVIRONMENT, environmentId);
    const older = { ...tx, featureLevel: AGENT_WITH_ENVIRONMENT_LEVEL - 1 };
    await queueEnvironmentWork(older, caller, environment, { withAgent: true });
  });
  expect(await queue()).toEqual([{ kind: WorkKind.ENVIRONMENT, leased_by: null }]);
});

describe("a lease that is lost before the environment is running", () => {
  test("is given again, for both or for the environment alone, and the late runner is refused", async () => {
    const id = await runs.start({});
    const lost = await takeTogether();
    await expireLeases();
    expect(await stateOf(id)).toEqual(BEING_MADE);
    const again = await takeTogether();
    expect(again).toMatchObject({ leaseId: lost.leaseId, attempt: 2, fence: 2n });
    await expect(report(lost, UP)).rejects.toMatchObject({ reason: ErrorReason.LEASE_LOST });
    await runs.finish(again, Outcome.RELEASED);
    // A program of another release takes it.
    const [alone] = await runs.lease(WorkKind.ENVIRONMENT);
    expect(alone).toMatchObject({ attempt: 3, fence: 3n });
    expect(alone?.work.case).toBe("environment");
  });

  test("ends the run with its environment after the third attempt", async () => {
    const id = await runs.start({});
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect((await takeTogether()).attempt).toBe(attempt);
      await expireLeases();
    }
    const message = "the runner was lost, or gave the work back, in each of 3 attempts";
    expect(await stateOf(id)).toEqual({
      phase: Phase.STOPPED,
      environment: EnvironmentPhase.STOPPED,
      wanted: EnvironmentPhase.STOPPED,
      failureReason: Reason.ENVIRONMENT,
      failureMessage: `its environment failed: ${message}`,
    });
    expect(await queue()).toEqual([]);
  });

  test("counts no more once the environment was up", async () => {
    const id = await runs.start({});
    await takeTogether();
    await expireLeases();
    await report(await takeTogether(), UP);
    await expireLeases();
    expect(await stateOf(id)).toMatchObject({ phase: Phase.WAITING_FOR_INPUT });
    expect(await takeTogether()).toMatchObject({ attempt: 1, fence: 3n });
  });
});

test("an environment that cannot be made fails its run, with the runner's words", async () => {
  const id = await runs.start({});
  const failure = { reason: "environment_failed", message: "the repository is not there" };
  await runs.finish(await takeTogether(), Outcome.FAILED, failure);
  expect(await stateOf(id)).toEqual({
    phase: Phase.STOPPED,
    environment: EnvironmentPhase.STOPPED,
    wanted: EnvironmentPhase.STOPPED,
    failureReason: Reason.ENVIRONMENT,
    failureMessage: "its environment failed: the repository is not there",
  });
  expect(await queue()).toEqual([]);
});

test("a run whose agent is no longer registered fails, and its environment is stopped", async () => {
  const id = await runs.start({});
  await unregisterAgent(made.store, null, "coder");
  expect(await leaseTogether(WorkKind.AGENT)).toEqual([]);
  expect(await stateOf(id)).toMatchObject({
    phase: Phase.STOPPED,
    wanted: EnvironmentPhase.STOPPED,
    failureReason: Reason.SERVICE,
  });
});

describe("while a runner makes the environment", () => {
  test("a stop is heard, and what is left of the environment is stopped after the lease", async () => {
    const id = await runs.start({});
    const given = await takeTogether();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    expect(await runner.renewLease(runs.named(given))).toMatchObject({ stop: true });
    expect(await leaseTogether()).toEqual([]);
    await runs.finish(given, Outcome.STOPPED);
    expect(await stateOf(id)).toMatchObject({ phase: Phase.STOPPED, wanted: EnvironmentPhase.STOPPED });
    const [rest] = await leaseTogether();
    expect(rest?.work.case).toBe("environment");
    await runs.finish(rest as Work);
    expect((await stateOf(id)).environment).toBe(EnvironmentPhase.STOPPED);
  });

  test.each(["stop", "delete"] as const)("a %s of the environment waits for the lease", async (order) => {
    const id = await runs.start({});
    const given = await takeTogether();
    const environmentId = await environmentIdOf(id);
    if (order === "stop") await own.environments.stopEnvironment({ environmentId });
    else await own.environments.deleteEnvironment({ environmentId });
    expect(await runner.renewLease(runs.named(given))).toMatchObject({ stop: true });
    expect(await leaseTogether()).toEqual([]);
    await (order === "stop" ? runs.finish(given, Outcome.STOPPED) : expireLeases());
    expect((await stateOf(id)).phase).toBe(Phase.STOPPED);
    const [rest] = await leaseTogether();
    expect(rest?.work.case).toBe("environment");
    await runs.finish(rest as Work);
    expect((await stateOf(id)).environment).toBe(order === "stop" ? EnvironmentPhase.STOPPED : undefined);
    expect(await queue()).toEqual([]);
  });

  test("another run in it waits, and nobody else makes it", async () => {
    const id = await runs.start({});
    const given = await takeTogether();
    const codeContext = {
      context: { case: "environmentId", value: await environmentIdOf(id) },
    } as const;
    const second = await runs.start({ codeContext });
    expect(await leaseTogether()).toEqual([]);
    await report(given, UP);
    expect(agentWorkIn(await takeTogether()).agentExecution?.id).toBe(second);
  });
});

test("an environment whose own run was stopped is made for the others in it", async () => {
  const id = await runs.start({});
  const codeContext = { context: { case: "environmentId", value: await environmentIdOf(id) } } as const;
  const second = await runs.start({ codeContext });
  await runs.agents.stopAgentExecution({ agentExecutionId: id });
  expect(await leaseTogether(WorkKind.AGENT)).toEqual([]);
  const [alone] = await leaseTogether(WorkKind.ENVIRONMENT);
  expect(alone?.work.case).toBe("environment");
  await runs.finish(alone as Work);
  expect(agentWorkIn(await takeTogether()).agentExecution?.id).toBe(second);
});
