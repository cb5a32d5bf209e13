import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  OrganizationService as Organizations,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import {
  WorkflowExecutionActionPhase as ActionPhase,
  WorkflowExecutionPhase as Phase,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { OPERATOR } from "../../../src/store/store.ts";
import { insertServiceAccountToken } from "../../harness/machine-token.ts";
import { insertTestMember } from "../../harness/member.ts";
import { openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { classEntry, type Services, servicesOf } from "../services.ts";
import {
  action,
  actionOf,
  overRepositories,
  repositories,
  runnerOf,
  task,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

let testStore: TestStore;
let administrator: Caller;
let workflows: Workflows;
let services: Services;
beforeEach(async () => {
  testStore = openTestStore();
  administrator = await testStore.createOrganization("harbour");
  workflows = workflowsOf(testStore, administrator);
  services = servicesOf(testStore, administrator);
});
afterEach(() => testStore.close());

const setPolicies = (json: JsonObject) => {
  const { organizationId } = administrator;
  const organizations = operationsOf(Organizations, new OrganizationService(testStore.deps), administrator);
  const req = fromJson(UpdateOrganizationPoliciesRequestSchema, { organizationId, ...json });
  return organizations.updateOrganizationPolicies(req);
};
const refusal = (reason: ErrorReason, metadata: object = {}) => ({ reason, metadata });
const history = () => testStore.history(administrator);

/** Another member of the organization. */
async function member(email = "ann@example.org", of = administrator): Promise<Caller> {
  const { store, keys } = testStore;
  const { accountId, userId } = await insertTestMember(store, keys, {
    organizationId: of.organizationId,
    email,
  });
  const tokenId = await testStore.issueTokenId(userId);
  return { ...userOf({ ...of, accountId, tokenId }, userId), role: "member" };
}

const manual = (context: JsonObject): JsonObject => ({ manual: {}, context });
const overProjects = (...projectIds: string[]) => manual({ projects: { projectIds } });
const overAgent = (prompt = "look around") => manual({ agent: { prompt } });

describe("the parameters of a start", () => {
  const templated = {
    triggers: [overAgent("look at {{ .Parameters.where }}")],
    action: action(
      1,
      1,
      task("echo {{ .Parameters.word }} '{{.ID}}'"),
      { agent: { prompt: "say {{.Parameters.word}}" } },
      {
        pullRequest: {
          title: "{{ .Parameters.word }}",
          description: "about {{ .Parameters.where }}",
          branch: "tidy/{{ .Parameters.where }}",
        },
      },
    ),
  };

  test("are substituted in the six places, and reach commands by their environment only", async () => {
    const runner = await runnerOf(testStore, administrator);
    const workflowId = await workflows.make(templated);
    const { spec } = await workflows.start(workflowId, { parameters: { word: "$(id)", where: "harbour" } });
    expect(spec?.trigger?.context?.context.value).toMatchObject({ prompt: "look at harbour" });
    const [work] = await runner.lease();
    if (!work) throw new Error("no work");
    const { steps, variables } = actionOf(work);
    expect(steps.map(({ step }) => step.value)).toMatchObject([
      { prompt: "look at harbour" },
      { command: expect.stringMatching(/^echo "\$\{\w+\}" '\{\{\.ID\}\}'$/) },
      { prompt: "say $(id)" },
      { title: "$(id)", description: "about harbour", branch: "tidy/harbour" },
    ]);
    expect(Object.values(variables)).toEqual(["$(id)"]);
    const command = steps[1]?.step.value;
    expect(command).toMatchObject({ command: expect.stringContaining(Object.keys(variables)[0] ?? "?") });
  });

  test("that are missing refuse it, naming the place, and nothing of it happens", async () => {
    const workflowId = await workflows.make(templated);
    const before = await history();
    await expect(workflows.start(workflowId, { parameters: { where: "harbour" } })).rejects.toMatchObject(
      refusal(ErrorReason.VALUE_UNUSABLE, { field: "action.steps[0].task.command" }),
    );
    await expect(workflows.start(workflowId, { parameters: { word: "x" } })).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
    expect(await history()).toEqual(before);
  });

  test("that nothing uses are a warning", async () => {
    const { status } = await workflows.start(await workflows.make(), { parameters: { b: "1", a: "2" } });
    expect(status?.warnings).toMatchObject([
      { reason: "parameter_unused", meta: { parameter: "a" } },
      { reason: "parameter_unused", meta: { parameter: "b" } },
    ]);
    expect(status?.warningMessage).toBe("nothing uses the parameter a\nnothing uses the parameter b");
  });
});

describe("a context override", () => {
  const over = (context: JsonObject): JsonObject => ({ contextOverride: context });

  test("replaces the manual trigger's context, and changes nothing of the workflow", async () => {
    const workflowId = await workflows.make();
    const projectId = await services.project("ship");
    const execution = await workflows.start(workflowId, over({ projects: { projectIds: [projectId] } }));
    const [only] = await workflows.actions(execution.id);
    expect(only?.metadata?.actionName).toBe("ship");
    expect(only?.spec?.context?.context).toMatchObject({ case: "projectId", value: projectId });
    const { workflow } = await workflows.getWorkflow({ workflowId });
    expect(workflow?.spec?.triggers[0]?.context?.context.case).toBe("repositories");
  });

  test("is needed where there is no manual trigger, and does for one", async () => {
    const time = { time: { cronExpression: "0 4 * * *" }, context: { projects: {} } };
    const workflowId = await workflows.make({ triggers: [time] });
    await expect(workflows.start(workflowId)).rejects.toMatchObject(refusal(ErrorReason.CONTEXT_MISSING));
    const [url] = repositories(1);
    const started = await workflows.start(
      workflowId,
      over({ repositories: { repositoryUrls: { repoUrls: [url ?? ""] } } }),
    );
    expect(started.status?.pendingActionCount).toBe(1);
  });

  test("is refused where it names what is not there, or not fit", async () => {
    const island = await testStore.createOrganization("island");
    const theirs = servicesOf(testStore, island);
    const foreign = await theirs.project("raft");
    const { classId: foreignClass } = await theirs.runnerWithClass("south");
    const { classId } = await services.runnerWithClass("north");
    await services.configuration.updateEnvironmentClass({ environmentClassId: classId, enabled: false });
    const doomed = await services.project("wreck");
    await services.use(doomed);
    await services.projects.deleteProject({ projectId: doomed });
    const workflowId = await workflows.make();
    const inClass = (environmentClassId: string) => ({
      repositories: { repositoryUrls: { repoUrls: repositories(1) }, environmentClassId },
    });
    const before = await history();
    for (const [context, expected] of [
      [{ fromTrigger: {} }, refusal(ErrorReason.VALUE_UNUSABLE, { field: "contextOverride.fromTrigger" })],
      [{ projects: { projectIds: [foreign] } }, refusal(ErrorReason.NOT_FOUND, { resource: "project" })],
      [
        { projects: { projectIds: [doomed] } },
        refusal(ErrorReason.PENDING_DELETION, { resource: "project" }),
      ],
      [inClass(foreignClass), refusal(ErrorReason.NOT_FOUND, { resource: "environment class" })],
      [inClass(classId), { reason: ErrorReason.PHASE_UNSUITABLE }],
      [
        { repositories: { repositoryUrls: { repoUrls: ["/srv/git/local.git"] } } },
        { reason: ErrorReason.VALUE_UNUSABLE },
      ],
    ] as const) {
      await expect(workflows.start(workflowId, over(context as JsonObject))).rejects.toMatchObject(expected);
    }
    expect(await history()).toEqual(before);
  });

  test("is no way for a member to act as another person", async () => {
    const ann = await member();
    const annas = workflowsOf(testStore, ann);
    const workflowId = await annas.make();
    const executor = { id: administrator.subject.id, principal: administrator.subject.principal };
    await workflows.updateWorkflow({ workflowId, executor });
    expect((await annas.start(workflowId)).metadata?.executor?.id).toBe(administrator.subject.id);
    const override = over({ repositories: { repositoryUrls: { repoUrls: repositories(1) } } });
    await expect(annas.start(workflowId, override)).rejects.toMatchObject(
      refusal(ErrorReason.PERMISSION_DENIED, { permission: "start_workflow" }),
    );
    await workflows.start(workflowId, override);
  });
});

describe("a workflow starts", () => {
  test("for its creator and administrators, and for nobody else", async () => {
    const workflowId = await workflowsOf(testStore, await member()).make();
    const execution = await workflows.start(workflowId);
    expect(execution.metadata?.creator?.id).toBe(administrator.subject.id);
    expect(execution.metadata?.executor?.id).not.toBe(administrator.subject.id);
    const other = workflowsOf(testStore, await member("ben@example.org"));
    await expect(other.start(workflowId)).rejects.toMatchObject(refusal(ErrorReason.PERMISSION_DENIED));
    await expect(other.retryFailedActions({ workflowExecutionId: execution.id })).rejects.toMatchObject(
      refusal(ErrorReason.PERMISSION_DENIED),
    );
    const cancel = { workflowExecutionId: execution.id };
    await expect(other.cancelWorkflowExecution(cancel)).rejects.toMatchObject(
      refusal(ErrorReason.PERMISSION_DENIED),
    );
  });

  test("not while it is disabled or pending deletion", async () => {
    const workflowId = await workflows.make();
    const { id } = await workflows.start(workflowId);
    await workflows.updateWorkflow({ workflowId, disabled: true });
    await expect(workflows.start(workflowId)).rejects.toMatchObject(refusal(ErrorReason.WORKFLOW_DISABLED));
    await workflows.updateWorkflow({ workflowId, disabled: false });
    expect((await workflows.start(workflowId)).status?.phase).toBe(Phase.PENDING);
    await workflows.deleteWorkflow({ workflowId });
    await expect(workflows.start(workflowId)).rejects.toMatchObject(refusal(ErrorReason.PENDING_DELETION));
    expect((await workflows.execution(id)).status?.phase).toBe(Phase.PENDING);
  });

  test("and enters that in its ledger", async () => {
    const workflowId = await workflows.make();
    const { id } = await workflows.start(workflowId);
    const { triggerEvents } = await workflows.listWorkflowTriggerEvents({});
    expect(triggerEvents).toMatchObject([
      { workflowId, workflowExecutionId: id, triggerIndex: 0, verdict: 1, source: 1 },
    ]);
  });
});

describe("the executor of a workflow", () => {
  const unfit = (id: string) => refusal(ErrorReason.EXECUTOR_UNFIT, { executor_id: id });

  test("that left the organization starts nothing", async () => {
    const ann = await member();
    const workflowId = await workflowsOf(testStore, ann).make();
    await testStore.store.write(OPERATOR, "test", ({ db, now }) =>
      builderOf(db).updateTable("member").set({ left_at: now }).where("id", "=", ann.subject.id).execute(),
    );
    await expect(workflows.start(workflowId)).rejects.toMatchObject(unfit(ann.subject.id));
  });

  test("that is a service account starts until its validity ends or it is suspended", async () => {
    const { store, keys, clock } = testStore;
    const creatorAccountId = administrator.accountId;
    const { organizationId } = administrator;
    const { id: tokenId } = await insertServiceAccountToken(store, keys, {
      organizationId,
      creatorAccountId,
      description: "",
    });
    const row = await builderOf(store.reader)
      .selectFrom("token")
      .select("subject_id")
      .where("id", "=", tokenId)
      .executeTakeFirst();
    const id = row?.subject_id ?? "";
    const workflowId = await workflows.make({ executor: { id, principal: "PRINCIPAL_SERVICE_ACCOUNT" } });
    expect((await workflows.start(workflowId)).metadata?.executor?.id).toBe(id);
    const work = await builderOf(store.reader).selectFrom("work").select("account_id").execute();
    expect(work).toEqual([{ account_id: null }]);
    const suspend = (suspended: number) =>
      store.write(OPERATOR, "test", ({ db }) =>
        builderOf(db).updateTable("service_account").set({ suspended }).execute(),
      );
    await suspend(1);
    await expect(workflows.start(workflowId)).rejects.toMatchObject(unfit(id));
    await suspend(0);
    await workflows.start(workflowId);
    clock.now += 3_600_000;
    await expect(workflows.start(workflowId)).rejects.toMatchObject(unfit(id));
  });

  test("needs a credential at the host of a search, which holds", async () => {
    const { runnerId } = await services.runnerWithClass("north");
    const selector = { repoSelector: { repoSearchString: "org:team", scmHost: "Git.Example.org" } };
    const workflowId = await workflows.make({ triggers: [manual({ repositories: selector })] });
    const missing = refusal(ErrorReason.CREDENTIAL_MISSING, { host: "git.example.org" });
    await expect(workflows.start(workflowId)).rejects.toMatchObject(missing);
    await services.configuration.createHostAuthenticationToken({
      runnerId,
      host: "git.example.org",
      token: "a credential",
      expiresAt: { seconds: BigInt(testStore.clock.now / 1000 + 60) },
    });
    const { status } = await workflows.start(workflowId);
    expect(status).toMatchObject({ phase: Phase.PENDING, pendingActionCount: 0 });
    testStore.clock.now += 60_000;
    await expect(workflows.start(workflowId)).rejects.toMatchObject(missing);
  });

  test("is held against the policies as they are at the start", async () => {
    const annas = workflowsOf(testStore, await member());
    const workflowId = await annas.make({ triggers: [overAgent()] });
    const agentId = "0190c0de-0000-7000-8000-00000000000a";
    const withAgent = await workflows.make({ agentId });
    await setPolicies({ disableFromScratch: true, agentPolicy: { allowedAgentIds: [testStore.newId()] } });
    for (const id of [workflowId, withAgent]) {
      await expect(workflows.start(id)).rejects.toMatchObject({ reason: ErrorReason.POLICY_DENIED });
    }
    await workflows.start(await workflows.make({ triggers: [overAgent()] }));
  });
});

describe("an action over a project", () => {
  test("goes to the first of the project's classes that takes environments", async () => {
    const north = await services.runnerWithClass("north");
    const south = await services.runnerWithClass("south");
    const projectId = await services.project("ship");
    await services.projects.updateProjectEnvironmentClasses({
      projectId,
      projectEnvironmentClasses: [classEntry(north.classId), classEntry(south.classId, 1)],
    });
    const workflowId = await workflows.make({ triggers: [overProjects(projectId)] });
    const places = () =>
      builderOf(testStore.store.reader)
        .selectFrom("work")
        .select(["environment_class_id", "runner_id"])
        .orderBy("turn")
        .execute();
    await workflows.start(workflowId);
    await services.configuration.updateEnvironmentClass({
      environmentClassId: north.classId,
      enabled: false,
    });
    await workflows.start(workflowId);
    expect(await places()).toEqual([
      { environment_class_id: north.classId, runner_id: null },
      { environment_class_id: south.classId, runner_id: null },
    ]);
    await services.configuration.updateEnvironmentClass({
      environmentClassId: south.classId,
      enabled: false,
    });
    const { id, status } = await workflows.start(workflowId);
    expect([status?.phase, status?.failedActionCount]).toEqual([Phase.COMPLETED, 1]);
    const [failed] = await workflows.actions(id);
    expect(failed?.status?.failures).toMatchObject([
      { reason: "environment_class_unusable", meta: { project_id: projectId } },
    ]);
  });

  test("goes to local runners where the project says so and the policy allows it", async () => {
    const projectId = await services.project("ship");
    const localRunner = { environmentClass: { case: "localRunner", value: true } } as const;
    await services.projects.updateProjectEnvironmentClasses({
      projectId,
      projectEnvironmentClasses: [localRunner],
    });
    const workflowId = await workflows.make({ triggers: [overProjects(projectId)] });
    await workflows.start(workflowId);
    const work = await builderOf(testStore.store.reader)
      .selectFrom("work")
      .select("runner_id")
      .executeTakeFirst();
    const local = await builderOf(testStore.store.reader)
      .selectFrom("runner")
      .select("kind")
      .where("id", "=", work?.runner_id ?? "")
      .executeTakeFirst();
    expect(local?.kind).toBe(3);
    await setPolicies({ allowLocalRunners: false });
    const { status } = await workflows.start(workflowId);
    expect(status?.failedActionCount).toBe(1);
  });

  test("that was deleted since fails alone, and makes room for the next", async () => {
    const [gone, there] = [await services.project("wreck"), await services.project("ship")];
    const triggers = [overProjects(gone, there)];
    const workflowId = await workflows.make({ triggers });
    await services.projects.deleteProject({ projectId: gone });
    const { id, status } = await workflows.start(workflowId);
    expect(status).toMatchObject({ phase: Phase.PENDING, pendingActionCount: 1, failedActionCount: 1 });
    const actions = await workflows.actions(id);
    expect(actions.map((each) => [each.metadata?.actionName, ActionPhase[each.status?.phase ?? 0]])).toEqual([
      ["wreck", "DONE"],
      ["ship", "PENDING"],
    ]);
    expect(actions[0]?.status?.failures).toMatchObject([
      { reason: "project_missing", meta: { project_id: gone } },
    ]);
  });
});

test("an action over a repository in a class that was disabled since fails instead of waiting forever", async () => {
  const { classId } = await services.runnerWithClass("north");
  const inClass = manual({
    repositories: { repositoryUrls: { repoUrls: repositories(1) }, environmentClassId: classId },
  });
  const workflowId = await workflows.make({ triggers: [inClass] });
  await services.configuration.updateEnvironmentClass({ environmentClassId: classId, enabled: false });
  const { id, status } = await workflows.start(workflowId);
  expect(status?.phase).toBe(Phase.COMPLETED);
  const [failed] = await workflows.actions(id);
  expect(failed?.status?.failures).toMatchObject([
    { reason: "environment_class_unusable", meta: { environment_class_id: classId } },
  ]);
});

test("the prompt of an agent makes one action of its own, with one step more", async () => {
  const steps = (count: number) => action(1, 1, ...Array.from({ length: count }, () => task()));
  const { id } = await workflows.start(await workflows.make({ triggers: [overAgent()], action: steps(49) }));
  const [only] = await workflows.actions(id);
  expect([only?.metadata?.actionName, only?.spec?.context, only?.status?.stepStatuses.length]).toEqual([
    "agent",
    undefined,
    50,
  ]);
  const tooMany = refusal(ErrorReason.VALUE_UNUSABLE, { field: "action.steps" });
  await expect(workflows.make({ triggers: [overAgent()], action: steps(50) })).rejects.toMatchObject(tooMany);
  const workflowId = await workflows.make({ triggers: [overRepositories(1)], action: steps(50) });
  await workflows.start(workflowId);
  const contextOverride = { agent: { prompt: "x" } };
  await expect(workflows.start(workflowId, { contextOverride })).rejects.toMatchObject(tooMany);
});
