import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AgentExecution_Phase as AgentPhase } from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import { EgressHostSet } from "#gen/service/v1/organization_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { RunnerPolicy } from "#gen/service/v1/runner_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { policySet } from "../../../src/domain/runner/kept-policies.ts";
import { markInactiveRunners } from "../../../src/jobs/runner-inactivity.ts";
import { followRunnerWaits } from "../../../src/jobs/runner-waits.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { isKeeperConnected } from "../../../src/services/runner/held-work.ts";
import {
  AGENT_WITH_ENVIRONMENT,
  API_AGENT_WITH_ENVIRONMENT,
  readyWorkOf,
} from "../../../src/store/runner/work.ts";
import { DAY_MS, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { addAgent, agentsOf } from "../agent/agents.ts";
import { type Services, servicesOf } from "../services.ts";
import { actionOf, type Workflows, workflowsOf } from "../workflow/running-workflow.ts";
import { registeredRunner } from "./work-service.ts";

let made: TestStore;
let caller: Caller;
let own: Services;
let workflows: Workflows;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  own = servicesOf(made, caller);
  workflows = workflowsOf(made, caller);
});
afterEach(() => made.close());

const KEEPS = [RunnerPolicy.VETO_EXEC];
const runner = (name: string, keeps?: readonly RunnerPolicy[]) =>
  registeredRunner(made, caller, { name, ...(keeps && { keeps }) });
const setPolicies = (
  policies: MessageInitShape<typeof OrganizationContract.method.updateOrganizationPolicies.input>,
) =>
  operationsOf(OrganizationContract, new OrganizationService(made.deps), caller).updateOrganizationPolicies({
    organizationId: caller.organizationId,
    ...policies,
  });
const veto = (enabled = true) => setPolicies({ vetoExecPolicy: { enabled, executables: ["curl"] } });
const followWaits = () => followRunnerWaits(made.store, DAY_MS, made.clock.now);
/** Starts an execution of one action; functions that read both. */
async function started() {
  const { id } = await workflows.start(await workflows.make());
  const action = async () => {
    const [only] = await workflows.actions(id);
    if (!only) throw new Error("there is no action");
    return only;
  };
  return { id, action, warnings: async () => (await action()).status?.warnings ?? [] };
}

describe("work under a policy that a runner does not keep", () => {
  test("waits for one that does, and says so with the policy's name", async () => {
    await veto();
    const open = await runner("open", []);
    const { id, action, warnings } = await started();
    expect(await open.lease()).toEqual([]);
    expect(await warnings()).toMatchObject([
      {
        reason: "waiting_for_runner",
        message: expect.stringContaining("keeps all of vetoExecPolicy:"),
        meta: { policies: "vetoExecPolicy" },
      },
    ]);
    expect((await workflows.execution(id)).status?.warnings).toMatchObject([
      { reason: "waiting_for_runner" },
    ]);
    // What was begun for the assignment is gone with it, and the row is held.
    expect((await own.environments.listEnvironments({})).environments).toEqual([]);
    expect(await open.lease()).toEqual([]);
    const strict = await runner("strict", KEEPS);
    expect(actionOf(await strict.leaseOne()).actionId).toBe((await action()).id);
  });

  test("warns of nothing while a runner that keeps it is connected", async () => {
    await veto();
    const open = await runner("open", []);
    await runner("strict", KEEPS);
    const { warnings } = await started();
    expect(await open.lease()).toEqual([]);
    expect(await warnings()).toEqual([]);
    await followWaits();
    expect(await warnings()).toEqual([]);
  });

  test("does not count runners of other organizations and classes", async () => {
    await veto();
    const open = await runner("open", []);
    const island = await made.createOrganization("island");
    await registeredRunner(made, island, { name: "theirs", keeps: KEEPS });
    const one = await started();
    await open.lease();
    expect(await one.warnings()).toHaveLength(1);
    await runner("strict", KEEPS);
    const { environment } = await own.environments.createEnvironment({
      spec: { desiredPhase: Phase.RUNNING, machine: { class: open.classId } },
    });
    await open.lease();
    const now = await own.environments.getEnvironment({ environmentId: environment?.id ?? "" });
    expect(now.environment?.status?.warningMessage).toEqual([expect.stringContaining("vetoExecPolicy")]);
  });

  test("is given to a runner that says nothing, which fails it", async () => {
    await veto();
    await started();
    expect((await (await runner("old")).leaseOne()).policies?.vetoExecPolicy?.enabled).toBe(true);
  });

  test("is given to every runner again once the policy is off", async () => {
    await veto();
    const open = await runner("open", []);
    await started();
    expect(await open.lease()).toEqual([]);
    const woken: number[] = [];
    const kinds = [WorkKind.AGENT, AGENT_WITH_ENVIRONMENT, API_AGENT_WITH_ENVIRONMENT];
    for (const kind of kinds)
      made.store.onChange(readyWorkOf(caller.organizationId, kind), () => woken.push(kind));
    await veto(false);
    expect(new Set(woken)).toEqual(new Set(kinds));
    expect(await open.lease()).toHaveLength(1);
  });

  test("needs nothing of the runner that stops its environment", async () => {
    const open = await runner("open", []);
    const { environment } = await own.environments.createEnvironment({
      spec: { desiredPhase: Phase.RUNNING, machine: { class: open.classId } },
    });
    const environmentId = environment?.id ?? "";
    const { leaseId, fence } = await open.leaseOne();
    await open.finishWork({ leaseId, fence, outcome: 1 });
    await veto();
    await own.environments.stopEnvironment({ environmentId });
    expect(await open.lease()).toHaveLength(1);
  });
});

describe("the wait", () => {
  test("begins when the last runner that keeps the policy goes, and ends when one comes", async () => {
    await veto();
    const open = await runner("open", []);
    await runner("strict", KEEPS);
    const { warnings, action } = await started();
    await open.lease();
    made.clock.now += 90_000;
    await open.heartbeat({});
    await markInactiveRunners(made.store, made.clock.now);
    await followWaits();
    expect(await warnings()).toHaveLength(1);
    made.clock.now += DAY_MS - 1;
    const other = await runner("other", KEEPS);
    await followWaits();
    made.clock.now += 1;
    await followWaits();
    expect((await action()).status?.failures).toEqual([]);
    expect(await other.lease()).toHaveLength(1);
  });

  test("ends after its time with the failure policy_unsupported, an environment's and an agent run's too", async () => {
    await veto();
    const open = await runner("open", []);
    await addAgent(made, null, { isDefault: true });
    const agents = agentsOf(made, caller);
    const { agentExecutionId } = await agents.startAgent({ name: "a", codeContext: {} });
    const run = async () => (await agents.getAgentExecution({ agentExecutionId })).agentExecution;
    const { action, warnings } = await started();
    expect(await open.lease(8)).toEqual([]);
    expect(await warnings()).toHaveLength(1);
    expect((await run())?.status?.warningMessage).toContain("vetoExecPolicy");
    made.clock.now += DAY_MS - 1;
    await followWaits();
    expect([(await action()).status?.failures, (await run())?.status?.phase]).toEqual([
      [],
      AgentPhase.PENDING,
    ]);
    made.clock.now += 1;
    await followWaits();
    expect((await action()).status?.failures).toMatchObject([
      { reason: "policy_unsupported", message: expect.stringContaining("vetoExecPolicy") },
    ]);
    expect((await run())?.status).toMatchObject({
      phase: AgentPhase.STOPPED,
      failureMessage: expect.stringContaining("vetoExecPolicy"),
    });
    expect(await (await runner("strict", KEEPS)).lease()).toEqual([]);
  });
});

test("the wait goes on under a change that demands as much, and begins again under one that demands less", async () => {
  await setPolicies({ egress: {}, vetoExecPolicy: { enabled: true, executables: ["curl"] } });
  const open = await runner("open", []);
  const { id, action, warnings } = await started();
  await open.lease();
  made.clock.now += DAY_MS - 1;
  await setPolicies({
    maximumRunningEnvironmentsPerUser: 9n,
    vetoExecPolicy: { enabled: true, executables: ["wget"] },
  });
  await setPolicies({ defaultEnvironmentImage: "x" });
  await setPolicies({ vetoExecPolicy: { enabled: false } });
  made.clock.now += 1;
  await followWaits();
  expect((await action()).status?.failures).toEqual([]);
  // People read of it what it waits for now, in the execution too.
  const said = { reason: "waiting_for_runner", meta: { policies: "egress" } };
  expect(await warnings()).toMatchObject([{ ...said, message: expect.stringContaining("all of egress:") }]);
  const { status } = await workflows.execution(id);
  expect(status?.warnings).toMatchObject([said]);
  expect(status?.warningMessage).toContain("all of egress:");
  made.clock.now += DAY_MS - 1;
  await setPolicies({ maximumRunningEnvironmentsPerUser: 8n, egress: { sets: [EgressHostSet.SOURCES] } });
  await open.lease();
  await followWaits();
  expect((await action()).status?.failures).toEqual([]);
  made.clock.now += 1;
  await followWaits();
  expect((await action()).status?.failures).toMatchObject([
    { reason: "policy_unsupported", message: expect.stringContaining("keeps all of egress:") },
  ]);
});

test("work on an agent that is defined by the API has no keeper in a runner that does not take those", async () => {
  await veto();
  await runner("strict", KEEPS);
  const needs = { needs: policySet(KEEPS), runner_id: null, environment_class_id: null };
  const isKept = (kind: number) => isKeeperConnected(made.store.reader, caller, { ...needs, kind });
  expect(await isKept(AGENT_WITH_ENVIRONMENT)).toBe(true);
  expect(await isKept(API_AGENT_WITH_ENVIRONMENT)).toBe(false);
  const taking = await runner("taking", KEEPS);
  await taking.heartbeat({ apiAgents: true });
  expect(await isKept(API_AGENT_WITH_ENVIRONMENT)).toBe(true);
});

test("a runner is shown with what it keeps, without what the server does not know", async () => {
  const strict = await runner("strict", [...KEEPS, 30 as RunnerPolicy, 77 as RunnerPolicy]);
  const shown = async () =>
    (await own.runners.getRunner({ runnerId: strict.runnerId })).runner?.status?.keptPolicies?.policies;
  expect(await shown()).toEqual(KEEPS);
  await strict.heartbeat({ keptPolicies: { policies: [] } });
  expect(await shown()).toEqual([]);
  await strict.heartbeat({ version: "1" });
  expect(await shown()).toEqual([]);
  await strict.heartbeat({ version: "2" });
  expect(await shown()).toBeUndefined();
});

test("the warning of an agent run and of its environment ends with the lease", async () => {
  await veto();
  const open = await runner("open", []);
  await addAgent(made, null, { isDefault: true });
  const agents = agentsOf(made, caller);
  const { agentExecutionId } = await agents.startAgent({ name: "a", codeContext: {} });
  await open.lease();
  const strict = await runner("strict", KEEPS);
  const [given] = (
    await strict.leaseWork({ maxLeases: 1, agentsWithEnvironment: true, wait: { seconds: 0n } })
  ).works;
  if (!given) throw new Error("nothing was leased");
  await strict.reportProgress({
    leaseId: given.leaseId,
    fence: given.fence,
    environment: { phase: Phase.RUNNING },
  });
  const { agentExecution } = await agents.getAgentExecution({ agentExecutionId });
  expect(agentExecution?.status).toMatchObject({ phase: AgentPhase.RUNNING, warningMessage: "" });
  const { environments } = await own.environments.listEnvironments({});
  expect(environments.map(({ status }) => status?.warningMessage)).toEqual([[]]);
});

test("a runner of another version that says nothing counts as one that never did", async () => {
  await veto();
  const changing = await runner("changing", []);
  await started();
  await changing.heartbeat({ version: "1" });
  expect(await changing.lease()).toEqual([]);
  await changing.heartbeat({ version: "0" });
  expect(await changing.lease()).toHaveLength(1);
  await changing.heartbeat({ keptPolicies: { policies: KEEPS } });
  await started();
  expect(await changing.lease()).toHaveLength(1);
});
