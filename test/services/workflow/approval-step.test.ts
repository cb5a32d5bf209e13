import { fromJson, type JsonObject, toJsonString } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { AccountService as AccountContract } from "#gen/service/v1/account_service_pb.js";
import { type Approval, ApprovalSchema, ApprovalState } from "#gen/service/v1/approval_pb.js";
import { DecideApprovalRequest_Decision as Decision } from "#gen/service/v1/approval_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  OrganizationService as OrganizationContract,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import { ServiceAccountService as ServiceAccountContract } from "#gen/service/v1/service_account_service_pb.js";
import {
  WorkflowExecutionPhase as ExecutionPhase,
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { stopTimedOutActions } from "../../../src/jobs/action-timeout.ts";
import { expireApprovals } from "../../../src/jobs/agent-timers.ts";
import { removeDeletedWorkflows } from "../../../src/jobs/workflow-removal.ts";
import { AccountService } from "../../../src/services/access/account-service.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { ServiceAccountService } from "../../../src/services/access/service-account-service.ts";
import { findEnvironment } from "../../../src/store/environment/environment.ts";
import { findTokens } from "../../../src/store/identity/token.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { DAY_MS, MINUTE_MS, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { approvalsOf, colleague, decision } from "../approval/approvals.ts";
import { servicesOf } from "../services.ts";
import {
  type AtWork,
  action,
  actionOf,
  Outcome,
  overRepositories,
  runnerOf,
  State,
  task,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

const { PENDING, APPROVED, EXPIRED, CANCELLED } = ApprovalState;
const SECOND_MS = 1_000;

let made: TestStore;
let caller: Caller;
let workflows: Workflows;
let runner: AtWork;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  workflows = workflowsOf(made, caller);
  runner = await runnerOf(made, caller);
});
afterEach(() => made.close());

const approval = (more: JsonObject = {}): JsonObject => ({ approval: { message: "Deploy it?", ...more } });
const start = async (...steps: JsonObject[]) =>
  workflows.start(await workflows.make({ action: action(1, 100, ...steps) }));
const onlyAction = async (executionId: string) => {
  const [found] = await workflows.actions(executionId);
  if (!found) throw new Error("the execution has no action");
  return found;
};
const stateOf = async (executionId: string) => {
  const { status } = await onlyAction(executionId);
  const steps = (status?.stepStatuses ?? []).map(({ phase }) => StepPhase[phase]).join(" ");
  return [Phase[status?.phase ?? 0], steps, ...(status?.failures ?? []).map(({ reason }) => reason)];
};
const asked = async (executionId: string): Promise<Approval[]> =>
  (await approvalsOf(made, caller).listApprovals({ filter: { workflowExecutionIds: [executionId] } }))
    .approvals;
const onlyAsked = async (executionId: string): Promise<Approval> => {
  const [found, ...others] = await asked(executionId);
  if (!found || others.length > 0) throw new Error("not exactly one approval was asked for");
  return found;
};
const decide = (on: Approval, by = caller, other: Parameters<typeof decision>[1] = {}) =>
  approvalsOf(made, by).decideApproval(decision(on, other));
const onlyWork = async (by = runner) => {
  const [work, ...others] = await by.lease(9);
  if (!work || others.length > 0) throw new Error("not exactly one action was leased");
  return work;
};
const move = (work: Awaited<ReturnType<typeof onlyWork>>, stepIndex: number, by = runner) =>
  by.report(work, { stepIndex, state: State.RUNNING }, { stepIndex, state: State.DONE });
/** An action that has done its first step and waits for the approval of its second one. */
async function paused(more: JsonObject = {}, ...after: JsonObject[]) {
  const { id } = await start(task("one"), approval(more), ...(after.length > 0 ? after : [task("two")]));
  const work = await onlyWork();
  await move(work, 0);
  await runner.finish(work, Outcome.WAITING);
  return { id, work, environmentId: actionOf(work).environment?.id ?? "" };
}
const environmentOf = (id: string) => findEnvironment(made.store.reader, caller, id);
const history = async (approvalId: string) => {
  const { audit, events } = await made.history(caller);
  const recorded = audit.filter(({ subject_id }) => subject_id === approvalId);
  expect(events.filter(({ resource_id }) => resource_id === approvalId)).toHaveLength(recorded.length);
  return recorded.map(({ operation }) => operation);
};
const organizations = () => operationsOf(OrganizationContract, new OrganizationService(made.deps), caller);
const setPolicy = (steps: JsonObject) =>
  organizations().updateOrganizationPolicies(
    fromJson(UpdateOrganizationPoliciesRequestSchema, {
      organizationId: caller.organizationId,
      agentPolicy: { approvals: { steps } },
    }),
  );

describe("the approvals of a workflow that is deleted", () => {
  const remove = async ({ asker }: Approval) => {
    const { metadata } = await workflows.execution(asker?.workflowExecutionId ?? "");
    await workflows.deleteWorkflow({ workflowId: metadata?.workflowId ?? "", force: true });
    expect(await removeDeletedWorkflows(made.store)).toBe(1);
  };
  const removed = "job/workflow-removal";

  test("go with a record, and are cancelled where nobody has decided them", async () => {
    const { id } = await start(approval(), task(), approval());
    const found = await onlyAsked(id);
    await remove(found);
    expect(await history(found.id)).toEqual(["approval/asked", "approval/cancelled", removed]);
  });

  test("that are pending although their action has ended are cancelled, too", async () => {
    const { id } = await start(approval(), task());
    const found = await onlyAsked(id);
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    await made.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db)
        .updateTable("approval")
        .set({ phase: PENDING, body: toJsonString(ApprovalSchema, found) })
        .where("id", "=", found.id)
        .execute(),
    );
    await remove(found);
    expect((await history(found.id)).slice(2)).toEqual(["approval/cancelled", removed]);
  });
});

describe("an approval step", () => {
  test("that comes first is asked before any runner gets the action", async () => {
    const { id } = await start(approval(), task());
    expect(await runner.lease()).toEqual([]);
    expect(await stateOf(id)).toEqual(["PENDING", "RUNNING PENDING"]);
    const { id: actionId } = await onlyAction(id);
    const found = await onlyAsked(id);
    expect(found).toMatchObject({
      state: PENDING,
      title: "Deploy it?",
      requestJson: `{"actionName":"r0","message":"Deploy it?","workflowActionId":"${actionId}","workflowExecutionId":"${id}"}`,
      asker: { workflowExecutionId: id, workflowActionId: actionId, stepIndex: 0 },
      creator: { id: caller.subject.id },
      executor: { id: caller.subject.id },
    });
    await decide(found);
    const work = await onlyWork();
    expect(actionOf(work)).toMatchObject({ firstStep: 1, hasWorkspace: false });
    await move(work, 1);
    await runner.finish(work, Outcome.DONE);
    expect(await stateOf(id)).toEqual(["DONE", "DONE DONE"]);
    expect(await history(found.id)).toEqual(["approval/asked", "approval/approved"]);
  });

  test("lets go of the runner, and goes on there with the same environment", async () => {
    const { id, work, environmentId } = await paused();
    // What comes after the approval has not left the server.
    expect(actionOf(work).steps.map(({ step }) => step.case)).toEqual(["task", "approval"]);
    expect(await stateOf(id)).toEqual(["PENDING", "DONE RUNNING PENDING"]);
    expect(await runner.lease()).toEqual([]);
    // Nothing may run in the environment, or act as it, meanwhile.
    const { STOPPED, RUNNING } = EnvironmentPhase;
    expect(await environmentOf(environmentId)).toMatchObject({
      spec: { desiredPhase: STOPPED },
      status: { phase: STOPPED },
    });
    await expect(
      servicesOf(made, caller).environments.startEnvironment({ environmentId }),
    ).rejects.toMatchObject({ reason: ErrorReason.PHASE_UNSUITABLE });
    expect(await findTokens(made.store.reader, caller, "environment", environmentId)).toEqual([]);
    const other = await runnerOf(made, caller, "south");
    await decide(await onlyAsked(id));
    expect(await other.lease()).toEqual([]);
    const rest = await onlyWork();
    expect(rest.attempt).toBe(1);
    expect(rest.environmentToken).not.toBe("");
    expect(actionOf(rest)).toMatchObject({
      firstStep: 2,
      hasWorkspace: true,
      environment: { id: environmentId, spec: { desiredPhase: RUNNING }, status: { phase: RUNNING } },
    });
    expect(actionOf(rest).steps).toHaveLength(3);
    await move(rest, 2);
    await runner.finish(rest, Outcome.DONE);
    expect(await stateOf(id)).toEqual(["DONE", "DONE DONE DONE"]);
    expect((await onlyAction(id)).status).toMatchObject({ attempt: 1, warnings: [] });
    expect(await environmentOf(environmentId)).toBeUndefined();
    expect((await workflows.execution(id)).status?.phase).toBe(ExecutionPhase.COMPLETED);
  });

  test("that comes last ends the action", async () => {
    const { id } = await start(task(), approval());
    const work = await onlyWork();
    await move(work, 0);
    await runner.finish(work, Outcome.WAITING);
    await decide(await onlyAsked(id));
    expect(await stateOf(id)).toEqual(["DONE", "DONE DONE"]);
    expect((await workflows.execution(id)).status).toMatchObject({
      phase: ExecutionPhase.COMPLETED,
      doneActionCount: 1,
    });
    const { environmentId = "" } = (await onlyAction(id)).status ?? {};
    expect((await environmentOf(environmentId))?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
  });

  test("can follow another", async () => {
    const { id } = await start(approval(), approval({ message: "Really?" }), task());
    await decide(await onlyAsked(id));
    const [second] = await asked(id);
    expect([second?.title, second?.state]).toEqual(["Really?", PENDING]);
    if (second) await decide(second);
    expect(actionOf(await onlyWork()).firstStep).toBe(2);
  });

  test("that is denied fails the action, and says why", async () => {
    const { id, environmentId } = await paused();
    const found = await onlyAsked(id);
    await decide(found, caller, { decision: Decision.DENY, reason: "not on a Friday" });
    expect(await stateOf(id)).toEqual(["DONE", "DONE FAILED CANCELLED", "approval_denied"]);
    expect((await onlyAction(id)).status?.failures).toMatchObject([
      { message: "the step was not approved: not on a Friday", meta: { approval_id: found.id } },
    ]);
    expect(await runner.lease()).toEqual([]);
    expect((await environmentOf(environmentId))?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
    expect((await workflows.execution(id)).status).toMatchObject({
      phase: ExecutionPhase.COMPLETED,
      failedActionCount: 1,
    });
    expect(await history(found.id)).toEqual(["approval/asked", "approval/denied"]);
  });

  test("that nobody approves in its time fails the action", async () => {
    const { id } = await paused({ timeout: "3600s" });
    const found = await onlyAsked(id);
    made.clock.now += 60 * MINUTE_MS;
    await Promise.all([1, 2].map(() => expireApprovals(made.store, made.clock.now)));
    expect(await stateOf(id)).toEqual(["DONE", "DONE FAILED CANCELLED", "approval_expired"]);
    expect((await onlyAsked(id)).state).toBe(EXPIRED);
    expect(await history(found.id)).toEqual(["approval/asked", "approval/expired"]);
  });

  test("has 24 hours where it says nothing", async () => {
    const { id } = await paused();
    made.clock.now += DAY_MS - 1;
    await expireApprovals(made.store, made.clock.now);
    expect((await onlyAsked(id)).state).toBe(PENDING);
    made.clock.now += 1;
    await expireApprovals(made.store, made.clock.now);
    expect((await onlyAsked(id)).state).toBe(EXPIRED);
  });

  test("ends when the account is blocked that the execution runs as", async () => {
    const member = await colleague(made, caller, "ann@example.org");
    const theirs = workflowsOf(made, member);
    const { id } = await theirs.start(await theirs.make({ action: action(1, 1, task(), approval()) }));
    const work = await onlyWork();
    await move(work, 0);
    await runner.finish(work, Outcome.WAITING);
    const accounts = operationsOf(AccountContract, new AccountService(made.deps), caller);
    await accounts.blockAccount({ accountId: member.accountId, reason: "left" });
    expect((await onlyAsked(id)).state).toBe(CANCELLED);
    expect(await stateOf(id)).toEqual(["STOPPED", "DONE CANCELLED"]);
    const environment = await environmentOf(actionOf(work).environment?.id ?? "");
    expect(environment?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
  });

  test.each(["the execution", "the action"])("ends with %s", async (what) => {
    const { id, environmentId } = await paused();
    if (what === "the execution") await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    else {
      const { id: workflowExecutionActionId } = await onlyAction(id);
      await workflows.cancelWorkflowExecutionAction({ workflowExecutionActionId });
    }
    const found = await onlyAsked(id);
    expect(found.state).toBe(CANCELLED);
    expect(await stateOf(id)).toEqual(["STOPPED", "DONE CANCELLED CANCELLED"]);
    expect((await environmentOf(environmentId))?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
    await expect(decide(found)).rejects.toMatchObject({ reason: ErrorReason.PHASE_UNSUITABLE });
    expect(await runner.lease()).toEqual([]);
  });

  test("that is approved and then stopped, before a runner has taken it, leaves nothing", async () => {
    const { id, environmentId } = await paused();
    await decide(await onlyAsked(id));
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    expect(await stateOf(id)).toEqual(["STOPPED", "DONE DONE CANCELLED"]);
    expect((await environmentOf(environmentId))?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
    expect(await runner.lease()).toEqual([]);
  });

  test("that the runner reaches while its action is being stopped asks nobody", async () => {
    const { id } = await start(task(), approval());
    const work = await onlyWork();
    await move(work, 0);
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    await runner.finish(work, Outcome.WAITING);
    expect(await asked(id)).toEqual([]);
    expect(await stateOf(id)).toEqual(["STOPPED", "DONE CANCELLED"]);
    expect((await environmentOf(actionOf(work).environment?.id ?? ""))?.spec?.desiredPhase).toBe(
      EnvironmentPhase.DELETED,
    );
  });

  test("counts among the actions that run at the same time", async () => {
    const triggers = [overRepositories(3)];
    const steps = action(2, 3, approval(), task());
    const { id } = await workflows.start(await workflows.make({ triggers, action: steps }));
    expect(await asked(id)).toHaveLength(2);
    const [, first] = await asked(id);
    if (first) await decide(first, caller, { decision: Decision.DENY });
    expect(await asked(id)).toHaveLength(3);
  });

  test("takes no part of the action's maximum time", async () => {
    const limits = { maxParallel: 1, maxTotal: 1, perExecution: { maxTime: "600s" } };
    const steps = [task(), approval(), task()];
    const { id } = await workflows.start(await workflows.make({ action: { limits, steps } }));
    const work = await onlyWork();
    await move(work, 0);
    made.clock.now += SECOND_MS;
    await runner.finish(work, Outcome.WAITING);
    made.clock.now += 60 * MINUTE_MS;
    await stopTimedOutActions(made.store, made.clock.now);
    await decide(await onlyAsked(id));
    const rest = await onlyWork();
    expect(actionOf(rest).maxTime?.seconds).toBe(599n);
    expect((await onlyAction(id)).status?.waited?.seconds).toBe(3_600n);
  });

  test("inserts parameters into what is asked, without characters that deceive", async () => {
    const workflowId = await workflows.make({
      action: action(1, 1, approval({ message: "Deploy {{ .Parameters.what }}?" }), task()),
    });
    const { id } = await workflows.start(workflowId, { parameters: { what: "one\u202e" } });
    expect((await onlyAsked(id)).title).toBe("Deploy one?");
  });

  test("lets the action fail when what was approved is not what the step asks for", async () => {
    const { id } = await paused();
    const found = await onlyAsked(id);
    const other = "0".repeat(64);
    await made.store.write(SYSTEM, "test", async ({ db }) => {
      const { body } = await builderOf(db).selectFrom("approval").select("body").executeTakeFirstOrThrow();
      const changed = body.replace(found.digest, other);
      await builderOf(db).updateTable("approval").set({ body: changed, digest: other }).execute();
    });
    await decide({ ...found, digest: other });
    expect(await stateOf(id)).toEqual(["DONE", "DONE FAILED CANCELLED", "approval_changed"]);
  });

  test("does not go on once the service account is suspended that the execution runs as", async () => {
    const accounts = operationsOf(ServiceAccountContract, new ServiceAccountService(made.deps), caller);
    const { serviceAccount } = await accounts.createServiceAccount({
      name: "nightly",
      validUntil: timestampFromMs(made.clock.now + DAY_MS),
    });
    const executor = { id: serviceAccount?.id ?? "", principal: "PRINCIPAL_SERVICE_ACCOUNT" };
    const steps = action(1, 1, task(), approval(), task());
    const { id } = await workflows.start(await workflows.make({ action: steps, executor }));
    const work = await onlyWork();
    await move(work, 0);
    await runner.finish(work, Outcome.WAITING);
    await made.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db).updateTable("service_account").set({ suspended: 1 }).execute(),
    );
    await decide(await onlyAsked(id));
    expect(await runner.lease()).toEqual([]);
    expect(await stateOf(id)).toEqual(["DONE", "DONE DONE CANCELLED", "executor_unfit"]);
    const environment = await environmentOf(actionOf(work).environment?.id ?? "");
    expect(environment?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
  });

  test("is asked again in a retry", async () => {
    const { id } = await paused();
    await decide(await onlyAsked(id), caller, { decision: Decision.DENY });
    const { workflowExecution } = await workflows.retryFailedActions({ workflowExecutionId: id });
    const again = workflowExecution?.id ?? "";
    const work = await onlyWork();
    await move(work, 0);
    await runner.finish(work, Outcome.WAITING);
    expect(await stateOf(again)).toEqual(["PENDING", "DONE RUNNING PENDING"]);
    expect((await onlyAsked(again)).state).toBe(PENDING);
  });
});

describe("losses", () => {
  test("of the runner after an approval let the steps begin again anywhere, and nobody is asked again", async () => {
    const { id, environmentId } = await paused();
    await decide(await onlyAsked(id));
    await onlyWork();
    await runner.fallSilent();
    expect((await environmentOf(environmentId))?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
    const other = await runnerOf(made, caller, "south");
    const work = await onlyWork(other);
    expect(work.attempt).toBe(2);
    expect(actionOf(work)).toMatchObject({ firstStep: 0, hasWorkspace: false });
    await move(work, 0, other);
    await other.finish(work, Outcome.WAITING);
    const rest = await onlyWork(other);
    expect(actionOf(rest)).toMatchObject({ firstStep: 2, hasWorkspace: true });
    await move(rest, 2, other);
    await other.finish(rest, Outcome.DONE);
    expect(await stateOf(id)).toEqual(["DONE", "DONE DONE DONE"]);
    expect((await onlyAsked(id)).decisions).toHaveLength(1);
  });

  test.each([
    ["while it waits", false],
    ["after the approval", true],
  ])("of the environment %s let the steps begin again, and nobody is asked again", async (_, isDecided) => {
    const { id } = await paused();
    if (isDecided) await decide(await onlyAsked(id));
    await servicesOf(made, caller).runners.deleteRunner({
      runnerId: runner.runnerId,
      force: true,
    });
    if (!isDecided) await decide(await onlyAsked(id));
    const other = await runnerOf(made, caller, "south");
    const work = await onlyWork(other);
    expect(actionOf(work)).toMatchObject({ firstStep: 0, hasWorkspace: false });
    expect((await onlyAction(id)).status?.warnings).toMatchObject([{ reason: "workspace_lost" }]);
    await move(work, 0, other);
    await other.finish(work, Outcome.WAITING);
    expect(actionOf(await onlyWork(other)).firstStep).toBe(2);
    expect(await asked(id)).toHaveLength(1);
  });
});

describe("a runner", () => {
  test("cannot report an approval step, nor what comes after it, nor finish without it", async () => {
    const { id } = await start(task(), approval(), task());
    const work = await onlyWork();
    await expect(runner.finish(work, Outcome.WAITING)).rejects.toMatchObject({
      reason: ErrorReason.PHASE_UNSUITABLE,
    });
    await move(work, 0);
    for (const stepIndex of [1, 2])
      for (const state of [State.RUNNING, State.DONE])
        await expect(runner.report(work, { stepIndex, state })).rejects.toMatchObject({
          reason: ErrorReason.PHASE_UNSUITABLE,
        });
    await expect(runner.finish(work, Outcome.DONE)).rejects.toMatchObject({
      reason: ErrorReason.PHASE_UNSUITABLE,
    });
    expect(await asked(id)).toEqual([]);
    await runner.finish(work, Outcome.WAITING);
    expect(await asked(id)).toHaveLength(1);
  });
});

describe("who decides an approval step", () => {
  test("can be anybody but who started the execution", async () => {
    const boss = await colleague(made, caller, "eve@example.org", "administrator");
    const { id } = await paused({ deciders: { who: "WHO_ADMINISTRATORS", excludesStarter: true } });
    const found = await onlyAsked(id);
    await expect(decide(found)).rejects.toMatchObject({ reason: ErrorReason.PERMISSION_DENIED });
    await decide(found, boss);
    expect(await stateOf(id)).toEqual(["PENDING", "DONE DONE PENDING"]);
  });

  test("is, without the starter, not whom the execution runs as either", async () => {
    const boss = await colleague(made, caller, "eve@example.org", "administrator");
    const third = await colleague(made, caller, "ann@example.org", "administrator");
    const workflowId = await workflows.make({
      action: action(
        1,
        1,
        approval({ deciders: { who: "WHO_ADMINISTRATORS", excludesStarter: true } }),
        task(),
      ),
    });
    const { id } = await workflowsOf(made, boss).start(workflowId);
    const found = await onlyAsked(id);
    expect([found.creator?.id, found.executor?.id]).toEqual([boss.subject.id, caller.subject.id]);
    for (const by of [boss, caller])
      await expect(decide(found, by)).rejects.toMatchObject({ reason: ErrorReason.PERMISSION_DENIED });
    await decide(found, third);
    expect((await onlyAsked(id)).state).toBe(APPROVED);
  });

  test("is read by every member, and decided by those who may", async () => {
    const member = await colleague(made, caller, "ann@example.org");
    const { id } = await paused();
    const theirs = approvalsOf(made, member);
    const [found] = (await theirs.listApprovals({})).approvals;
    if (!found) throw new Error("a member does not see it");
    await expect(decide(found, member)).rejects.toMatchObject({ reason: ErrorReason.PERMISSION_DENIED });
    expect((await onlyAsked(id)).state).toBe(PENDING);
  });

  test("is two of three, each once, of 30 decisions at the same time", async () => {
    const team = await Promise.all(
      ["ann", "ben", "eve"].map((name) => colleague(made, caller, `${name}@example.org`)),
    );
    const userIds = team.map(({ subject }) => subject.id);
    const { id } = await paused({ deciders: { who: "WHO_USERS", userIds, required: 2 } });
    const found = await onlyAsked(id);
    const settled = await Promise.allSettled(
      Array.from({ length: 10 }).flatMap(() => team.map((by) => decide(found, by))),
    );
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    const { state, decisions } = await onlyAsked(id);
    expect(state).toBe(APPROVED);
    expect(new Set(decisions.map(({ by }) => by?.id)).size).toBe(2);
    await onlyWork();
    expect(await runner.lease()).toEqual([]);
  });

  test("does not count once the account is blocked", async () => {
    const team = await Promise.all(
      ["ann", "ben", "eve"].map((name) => colleague(made, caller, `${name}@example.org`)),
    );
    const [ann, ben, eve] = team as [Caller, Caller, Caller];
    const userIds = team.map(({ subject }) => subject.id);
    const { id } = await paused({ deciders: { who: "WHO_USERS", userIds, required: 2 } });
    const found = await onlyAsked(id);
    await decide(found, ann);
    const accounts = operationsOf(AccountContract, new AccountService(made.deps), caller);
    await accounts.blockAccount({ accountId: ann.accountId, reason: "left" });
    await decide(found, ben);
    expect((await onlyAsked(id)).state).toBe(PENDING);
    expect(await runner.lease()).toEqual([]);
    await decide(found, eve);
    expect((await onlyAsked(id)).state).toBe(APPROVED);
  });

  test("is refused when nobody in the organization could satisfy it", async () => {
    const unfit = (deciders: JsonObject) =>
      workflows.make({ action: action(1, 1, task(), approval({ deciders })) });
    for (const deciders of [
      { who: "WHO_ADMINISTRATORS", required: 2 },
      { who: "WHO_ADMINISTRATORS", excludesStarter: true },
      { who: "WHO_USERS" },
      { who: "WHO_USERS", userIds: ["01900000-0000-7000-8000-000000000000"] },
    ])
      await expect(unfit(deciders)).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE });
    await expect(
      workflows.make({ report: action(1, 1, approval({ deciders: { required: 2 } })) }),
    ).rejects.toMatchObject({
      message: expect.stringMatching(/^report\.steps\[0\]\.approval\.deciders needs 2/),
    });
  });

  test("is whom the policy names, whatever the step says", async () => {
    const boss = await colleague(made, caller, "eve@example.org", "administrator");
    await setPolicy({ deciders: { who: "WHO_ADMINISTRATORS", excludesStarter: true } });
    const { id } = await paused();
    const found = await onlyAsked(id);
    expect(found.policyFieldPath).toBe("agentPolicy.approvals.steps.deciders");
    await expect(decide(found)).rejects.toMatchObject({ reason: ErrorReason.PERMISSION_DENIED });
    await decide(found, boss);
    expect((await onlyAsked(id)).state).toBe(APPROVED);
    await expect(setPolicy({ deciders: { required: 3 } })).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
  });
});

describe("a policy that demands approvals before pull requests", () => {
  const pullRequest = { pullRequest: { title: "Change", branch: "change" } };

  test("refuses workflows without, when they are written, started and retried", async () => {
    const before = await workflows.make({ action: action(1, 1, task(), pullRequest) });
    const { id } = await workflows.start(before);
    await runner.fail(await onlyWork());
    await setPolicy({ requiredBeforePullRequests: true });
    const denied = {
      reason: ErrorReason.POLICY_DENIED,
      decision: { fieldPath: "agentPolicy.approvals.steps.requiredBeforePullRequests" },
    };
    await expect(workflows.start(before)).rejects.toMatchObject(denied);
    await expect(workflows.retryFailedActions({ workflowExecutionId: id })).rejects.toMatchObject(denied);
    await expect(
      workflows.make({ action: action(1, 1, task(), pullRequest, approval()) }),
    ).rejects.toMatchObject(denied);
    await workflows.start(await workflows.make({ action: action(1, 1, task(), approval(), pullRequest) }));
  });
});
