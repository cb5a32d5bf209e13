import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { afterEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { RunnerPhase } from "#gen/service/v1/runner_pb.js";
import { TriggerVerdict as Verdict } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { EXEMPT_FROM_QUOTA } from "../../../src/domain/identity/storage-quota.ts";
import { fireDueTimeTriggers } from "../../../src/jobs/time-triggers.ts";
import { CONTRACT } from "../../../src/rpc/routes.ts";
import { findStoredBytes } from "../../../src/store/identity/organization-storage.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { MINUTE_MS, openTestStore, START_MS, type TestStore } from "../../harness/test-store.ts";
import { addAgent, runsOn } from "../agent/agents.ts";
import { registeredRunner } from "../runner/work-service.ts";
import { gitSpec, servicesOf } from "../services.ts";
import { REPOSITORY, triggeredWorkflows } from "../workflow/triggered-workflow.ts";

const EXCEEDED = expect.objectContaining({ reason: ErrorReason.STORAGE_QUOTA_EXCEEDED });
const MANUAL = { trigger: { case: "manual" as const, value: {} }, context: REPOSITORY };
const EACH_MINUTE = {
  trigger: { case: "time" as const, value: { cronExpression: "* * * * *" } },
  context: REPOSITORY,
};

const stores: TestStore[] = [];
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())));

/** An organization in a store of its own, whose rows are the same, byte for byte, whatever the quota. */
async function home(quotaBytes?: number) {
  const made = openTestStore(quotaBytes === undefined ? {} : { quotaBytes });
  stores.push(made);
  const caller = await made.createOrganization("harbour");
  return { made, caller, ...servicesOf(made, caller), workflows: triggeredWorkflows(made, caller) };
}

type Home = Awaited<ReturnType<typeof home>>;

const bytesOf = ({ made }: Pick<Home, "made">, caller: Caller) => findStoredBytes(made.store.reader, caller);

/** Lets an organization store more than any quota of these tests, past every check. */
function fill({ made, caller }: Home) {
  return made.store.write(SYSTEM, "test", ({ db }) =>
    builderOf(db)
      .insertInto("organization_policies")
      .values({ organization_id: caller.organizationId, body: "{}", origins: `{"x":"${"x".repeat(1e6)}"}` })
      .onConflict((conflict) =>
        conflict.column("organization_id").doUpdateSet({ origins: `{"x":"${"x".repeat(1e6)}"}` }),
      )
      .execute(),
  );
}

const MADE: readonly [string, (of: Home) => Promise<unknown>][] = [
  ["a project", (of) => of.project("pay")],
  ["a workflow", (of) => of.workflows.create([MANUAL])],
  ["a runner and its class", (of) => of.runnerWithClass("north")],
];

describe("an organization stores as much as its quota", () => {
  test.each(MADE)("and not a byte more: %s", async (_, make) => {
    const free = await home();
    await make(free);
    const needed = await bytesOf(free, free.caller);
    for (const quota of [needed, needed + 1]) {
      const own = await home(quota);
      await make(own);
      expect(await bytesOf(own, own.caller)).toBe(needed);
    }
    const short = await home(needed - 1);
    await expect(make(short)).rejects.toEqual(EXCEEDED);
    expect(await bytesOf(short, short.caller)).toBeLessThan(needed);
  });

  test("and what was refused leaves nothing, and room again is used again", async () => {
    const own = await home(100_000);
    const projectId = await own.project("pay");
    await own.projects.updateProject({ projectId, technicalDescription: "x".repeat(4_000) });
    const before = await bytesOf(own, own.caller);
    await expect(
      own.projects.updateProject({ projectId, technicalDescription: "x".repeat(100_001) }),
    ).rejects.toMatchObject({ metadata: { used_bytes: String(before), limit_bytes: "100000" } });
    expect(await bytesOf(own, own.caller)).toBe(before);
    await own.projects.updateProject({ projectId, technicalDescription: "x".repeat(90_000) });
    const other = () =>
      own.projects.createProject({ name: "other", technicalDescription: "x".repeat(20_000) });
    await expect(other()).rejects.toEqual(EXCEEDED);
    await own.projects.updateProject({ projectId, technicalDescription: "" });
    await other();
  });

  test("in a batch the elements that find no room fail alone", async () => {
    const own = await home(100_000);
    const element = (name: string, length: number) => ({
      name,
      initializer: { specs: [gitSpec(`https://git.example.org/team/${name}.git`)] },
      technicalDescription: "x".repeat(length),
    });
    const { createdProjects, failedProjects } = await own.projects.createProjects({
      projects: [element("small", 10), element("large", 100_000), element("last", 10)],
    });
    expect(createdProjects.map(({ metadata }) => metadata?.name)).toHaveLength(2);
    expect(failedProjects).toMatchObject([{ index: 1, error: expect.stringContaining("may store 100000") }]);
    const rows = await builderOf(own.made.store.reader).selectFrom("project").select("id").execute();
    expect(rows).toHaveLength(2);
  });
});

describe("an organization without room", () => {
  test("ends, deletes and shrinks what it has, reads it, and shuts others out", async () => {
    const own = await home(500_000);
    await addAgent(own.made, null, { isDefault: true });
    const runner = await registeredRunner(own.made, own.caller);
    const runs = runsOn(own.made, own.caller, runner);
    const agentExecutionId = await runs.start();
    const projectId = await own.project("pay");
    const environmentId = await own.use(projectId);
    const workflowId = await own.workflows.create([MANUAL]);
    const { operations } = own.workflows;
    const { workflowExecution } = await operations.startWorkflow({ workflowId });
    await fill(own);
    await expect(own.project("more")).rejects.toEqual(EXCEEDED);
    await expect(runs.start()).rejects.toEqual(EXCEEDED);
    await expect(own.use(projectId)).rejects.toEqual(EXCEEDED);
    await expect(operations.updateWorkflow({ workflowId, description: "longer" })).rejects.toEqual(EXCEEDED);
    const { runnerId } = runner;
    await expect(own.runners.updateRunner({ runnerId, name: "a much longer name" })).rejects.toEqual(
      EXCEEDED,
    );

    await own.projects.getProject({ projectId });
    await operations.updateWorkflow({ workflowId, disabled: true });
    await operations.updateWorkflow({ workflowId, name: "N" });
    await own.runners.updateRunner({ runnerId, spec: { desiredPhase: RunnerPhase.INACTIVE } });
    await operations.cancelWorkflowExecution({ workflowExecutionId: workflowExecution?.id ?? "" });
    await runs.agents.stopAgentExecution({ agentExecutionId });
    await own.environments.stopEnvironment({ environmentId });
    await own.environments.deleteEnvironment({ environmentId, force: true });
    await own.projects.deleteProject({ projectId });
    await operations.deleteWorkflow({ workflowId, force: true });
  });

  test("has what its triggers start refused, and the ledger says why", async () => {
    const own = await home(500_000);
    const workflowId = await own.workflows.create([EACH_MINUTE, MANUAL]);
    await fill(own);
    await expect(own.workflows.operations.startWorkflow({ workflowId })).rejects.toEqual(EXCEEDED);
    own.made.clock.now = START_MS + MINUTE_MS;
    await fireDueTimeTriggers(own.made.store, own.made.clock.now);
    const ledger = await own.workflows.ledger(workflowId);
    expect(ledger.map(({ verdict, reason }) => [verdict, /may store 500000/.test(reason)])).toEqual([
      [Verdict.REFUSED, true],
      [Verdict.REFUSED, true],
    ]);
    expect(await own.workflows.executions(workflowId)).toEqual([]);
    expect(await own.workflows.nextInstants(workflowId)).toEqual([START_MS + 2 * MINUTE_MS]);
  });

  test("takes nothing from another one", async () => {
    const own = await home(500_000);
    await fill(own);
    const stranger = await own.made.createOrganization("island");
    await servicesOf(own.made, stranger).project("pay");
  });
});

describe("each operation that writes", () => {
  const writing = CONTRACT.filter(({ typeName }) => typeName.startsWith("service.v1.")).flatMap((service) =>
    service.methods.filter(({ idempotency }) => idempotency !== Level.NO_SIDE_EFFECTS),
  );
  const names = writing.map(({ parent, name }) => `${parent.typeName}/${name}`);

  test("needs room, or is known not to: a new one has to be thought about", () => {
    expect([...EXEMPT_FROM_QUOTA].filter((name) => !names.includes(name))).toEqual([]);
    const needing = names.filter((name) => !EXEMPT_FROM_QUOTA.has(name)).map((name) => name.split("/")[1]);
    expect(needing.toSorted()).toEqual([
      "CreateAgent",
      "CreateAgentReviewDraft",
      "CreateEnvironment",
      "CreateEnvironmentClass",
      "CreateEnvironmentFromProject",
      "CreateEventSubscription",
      "CreateGroup",
      "CreateHostAuthenticationToken",
      "CreateMembership",
      "CreateOrganization",
      "CreateOrganizationInvite",
      "CreatePersonalAccessToken",
      "CreatePrebuild",
      "CreateProject",
      "CreateProjectFromEnvironment",
      "CreateProjects",
      "CreateRoleAssignment",
      "CreateRunner",
      "CreateRunnerToken",
      "CreateSecret",
      "CreateSecurityPolicy",
      "CreateServiceAccount",
      "CreateServiceAccountToken",
      "CreateServiceAccountTrust",
      "CreateWorkflow",
      "ForkAgentExecution",
      "JoinOrganization",
      "OpenPullRequest",
      "PushEnvironmentBranch",
      "RetryFailedActions",
      "SendToAgentExecution",
      "StartAgent",
      "UpdateAgent",
      "UpdateAgentReviewDraft",
      "UpdateEnvironment",
      "UpdateEventSubscription",
      "UpdateGroup",
      "UpdateOrganization",
      "UpdateProject",
      "UpdateProjectEnvironmentClasses",
      "UpdateProjects",
      "UpdateRoleAssignment",
      "UpdateRunner",
      "UpdateWorkflow",
    ]);
  });

  test("and deletes, cancels, stops or blocks passes", () => {
    const ending = names.filter((name) => /\/(Delete|Cancel|Stop|Remove|Block)/.test(name));
    expect(ending.filter((name) => !EXEMPT_FROM_QUOTA.has(name))).toEqual([]);
  });
});
