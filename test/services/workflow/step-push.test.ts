import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { type Approval, ApprovalKind, ApprovalState } from "#gen/service/v1/approval_pb.js";
import { DecideApprovalRequest_Decision as Decision } from "#gen/service/v1/approval_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  OrganizationService as OrganizationContract,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import {
  WorkflowExecutionActionPhase as Phase,
  WorkflowExecutionAction_Status_StepStatus_StepPhase as StepPhase,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { expireApprovals } from "../../../src/jobs/agent-timers.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { findEnvironment } from "../../../src/store/environment/environment.ts";
import { DAY_MS, MINUTE_MS, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { approvalsOf, colleague, decision } from "../approval/approvals.ts";
import {
  type AtWork,
  actionOf,
  Outcome,
  runnerOf,
  State,
  task,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

const { PENDING, APPROVED, DENIED, EXPIRED, CANCELLED } = ApprovalState;
const ONE = "1".repeat(40);
const TWO = "2".repeat(40);
const REMOTE = "https://git.example.org/team/r0.git";

let made: TestStore;
let caller: Caller;
let decider: Caller;
let workflows: Workflows;
let runner: AtWork;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  decider = await colleague(made, caller, "bo@example.org", "administrator");
  workflows = workflowsOf(made, caller);
  runner = await runnerOf(made, caller);
  await setRules({ branches: ["tidy/*"], effect: "EFFECT_ASK" });
});
afterEach(() => made.close());

const setRules = (...rules: JsonObject[]) =>
  operationsOf(OrganizationContract, new OrganizationService(made.deps), caller).updateOrganizationPolicies(
    fromJson(UpdateOrganizationPoliciesRequestSchema, {
      organizationId: caller.organizationId,
      agentPolicy: { pushRules: { rules } },
    }),
  );
const opening: JsonObject = {
  pullRequest: { title: "Tidy up", description: "It was untidy.", branch: "tidy/up", draft: true },
};
const pushOf = (commit = ONE) => ({ remote: REMOTE, commit, base: "main" });
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
/** What an execution has asked for, the newest first. */
const asked = async (executionId: string, by = caller): Promise<Approval[]> =>
  (await approvalsOf(made, by).listApprovals({ filter: { workflowExecutionIds: [executionId] } })).approvals;
const newest = async (executionId: string): Promise<Approval> => {
  const [found] = await asked(executionId);
  if (!found) throw new Error("nothing was asked for");
  return found;
};
const decide = (on: Approval, other: Parameters<typeof decision>[1] = {}, by = decider) =>
  approvalsOf(made, by).decideApproval(decision(on, other));
const onlyWork = async (by = runner): Promise<Work> => {
  const [work, ...others] = await by.lease(9);
  if (!work || others.length > 0) throw new Error("not exactly one action was leased");
  return work;
};
const begins = (work: Work, stepIndex: number, by = runner) =>
  by.report(work, { stepIndex, state: State.RUNNING });
const environmentOf = (id: string) => findEnvironment(made.store.reader, caller, id);
const history = async (approvalId: string) =>
  (await made.history(caller)).audit
    .filter(({ subject_id }) => subject_id === approvalId)
    .map(({ operation }) => operation);

/** Has a runner do the steps up to the pullRequest step, and ask for its push. */
async function asks(work: Work, commit = ONE, by = runner): Promise<void> {
  const stepIndex = actionOf(work).steps.findIndex(({ step }) => step.case === "pullRequest");
  for (let index = actionOf(work).firstStep; index < stepIndex; index++)
    await by.report(
      work,
      { stepIndex: index, state: State.RUNNING },
      { stepIndex: index, state: State.DONE },
    );
  await begins(work, stepIndex, by);
  await by.finish(work, Outcome.WAITING, pushOf(commit));
}
/** An action that waits for the approval of the push of its second step. */
async function waiting(more: JsonObject = {}, steps: JsonObject[] = [task(), opening]) {
  const limits = { maxParallel: 1, maxTotal: 1, ...more };
  const { id } = await workflows.start(await workflows.make({ action: { limits, steps } }));
  const work = await onlyWork();
  await asks(work);
  return { id, work, environmentId: actionOf(work).environment?.id ?? "" };
}

describe("a pullRequest step whose push the rules ask about", () => {
  test("asks for exactly the push and the pull request, and of somebody else than the starter", async () => {
    const { id, environmentId } = await waiting();
    expect(await stateOf(id)).toEqual(["PENDING", "DONE RUNNING"]);
    const { id: actionId } = await onlyAction(id);
    const found = await newest(id);
    expect(found).toMatchObject({
      state: PENDING,
      kind: ApprovalKind.PUSH,
      title: `Push tidy/up and open a pull request: ${REMOTE}`,
      requestJson: `{"branch":"tidy/up","commit":"${ONE}","pullRequest":{"base":"main","body":"It was untidy.","draft":true,"title":"Tidy up"},"remote":"${REMOTE}"}`,
      asker: { workflowExecutionId: id, workflowActionId: actionId, stepIndex: 1, environmentId: "" },
      creator: { id: caller.subject.id },
      executor: { id: caller.subject.id },
      deciders: { excludesStarter: true },
      policyFieldPath: "agentPolicy.pushRules.rules[0]",
    });
    expect((await asked(id, await colleague(made, caller, "cy@example.org"))).length).toBe(1);
    await expect(decide(found, {}, caller)).rejects.toMatchObject({ reason: ErrorReason.PERMISSION_DENIED });
    expect(await runner.lease()).toEqual([]);
    expect((await environmentOf(environmentId))?.status?.phase).toBe(EnvironmentPhase.STOPPED);
  });

  test("goes on where its files are, with the digest of what was approved, and carries it out once", async () => {
    const { id, environmentId } = await waiting({}, [task(), opening, task()]);
    const found = await newest(id);
    await decide(found);
    const other = await runnerOf(made, caller, "south");
    expect(await other.lease()).toEqual([]);
    const work = await onlyWork();
    expect(actionOf(work)).toMatchObject({
      firstStep: 1,
      hasWorkspace: true,
      approvedPushDigest: found.digest,
      environment: { id: environmentId, status: { phase: EnvironmentPhase.RUNNING } },
    });
    await begins(work, 1);
    const done = { stepIndex: 1, state: State.DONE, approvedPushDigest: found.digest };
    for (const _ of ["first", "repeated"]) await runner.report(work, done);
    expect((await newest(id)).carriedOutAt).toBeDefined();
    expect(await history(found.id)).toEqual(["approval/asked", "approval/approved", "approval/carried_out"]);
    await runner.report(work, { stepIndex: 2, state: State.RUNNING }, { stepIndex: 2, state: State.DONE });
    await runner.finish(work, Outcome.DONE);
    expect(await stateOf(id)).toEqual(["DONE", "DONE DONE DONE"]);
    expect((await onlyAction(id)).status).toMatchObject({ attempt: 1, warnings: [] });
  });

  test("can come first: its environment waits for the runner, too", async () => {
    const { id, environmentId } = await waiting({}, [opening]);
    await decide(await newest(id));
    expect(actionOf(await onlyWork())).toMatchObject({
      firstStep: 0,
      hasWorkspace: true,
      environment: { id: environmentId },
    });
  });

  test.each<[string, Decision | undefined, string, string]>([
    ["is denied", Decision.DENY, "approval_denied", "the push was not approved: not on a Friday"],
    ["is not approved in time", undefined, "approval_expired", "nobody approved the push in time"],
  ])("fails when it %s, and leaves nothing", async (_, decided, reason, message) => {
    const { id, environmentId } = await waiting();
    const found = await newest(id);
    if (decided) await decide(found, { decision: decided, reason: "not on a Friday" });
    else {
      made.clock.now += DAY_MS - 1;
      await expireApprovals(made.store, made.clock.now);
      expect((await newest(id)).state).toBe(PENDING);
      made.clock.now += 1;
      await Promise.all([1, 2].map(() => expireApprovals(made.store, made.clock.now)));
    }
    expect((await newest(id)).state).toBe(decided ? DENIED : EXPIRED);
    expect(await stateOf(id)).toEqual(["DONE", "DONE FAILED", reason]);
    expect((await onlyAction(id)).status?.failures).toMatchObject([
      { message, meta: { approval_id: found.id } },
    ]);
    expect(await runner.lease()).toEqual([]);
    expect((await environmentOf(environmentId))?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
  });

  test("asks again when it would push another commit than was approved", async () => {
    const { id } = await waiting();
    const first = await newest(id);
    await decide(first);
    await asks(await onlyWork(), TWO);
    expect(await stateOf(id)).toEqual(["PENDING", "DONE RUNNING"]);
    expect(await runner.lease()).toEqual([]);
    const second = await newest(id);
    expect([second.state, JSON.parse(second.requestJson).commit]).toEqual([PENDING, TWO]);
    await decide(second);
    const work = await onlyWork();
    expect(actionOf(work).approvedPushDigest).toBe(second.digest);
    await begins(work, 1);
    await runner.report(work, { stepIndex: 1, state: State.DONE, approvedPushDigest: second.digest });
    const all = await asked(id);
    expect(all.map(({ state, carriedOutAt }) => [state, carriedOutAt !== undefined])).toEqual([
      [APPROVED, true],
      [APPROVED, false],
    ]);
  });

  test("asks nobody again for what was approved", async () => {
    const { id } = await waiting();
    await decide(await newest(id));
    await asks(await onlyWork());
    expect(await asked(id)).toHaveLength(1);
    expect(actionOf(await onlyWork()).approvedPushDigest).toBe((await newest(id)).digest);
  });

  test("begins again after its runner was lost, and asks for what it would push then", async () => {
    const { id, environmentId } = await waiting();
    await decide(await newest(id));
    await begins(await onlyWork(), 1);
    await runner.fallSilent();
    expect((await environmentOf(environmentId))?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
    const other = await runnerOf(made, caller, "south");
    const work = await onlyWork(other);
    expect(actionOf(work)).toMatchObject({ firstStep: 0, hasWorkspace: false, approvedPushDigest: "" });
    await asks(work, TWO, other);
    expect((await asked(id)).map(({ state }) => state)).toEqual([PENDING, APPROVED]);
  });

  test("asks nobody once the rules do not ask any more, and gets those of now", async () => {
    const { id } = await workflows.start(
      await workflows.make({ action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [task(), opening] } }),
    );
    const work = await onlyWork();
    await setRules({ branches: ["tidy/*"], effect: "EFFECT_DENY" });
    await asks(work);
    expect(await asked(id)).toEqual([]);
    const rest = await onlyWork();
    expect(actionOf(rest)).toMatchObject({ firstStep: 1, hasWorkspace: true, approvedPushDigest: "" });
    expect(rest.policies?.agentPolicy?.pushRules?.rules).toMatchObject([{ branches: ["tidy/*"] }]);
  });

  test.each(["before anybody has decided", "after it was approved"])(
    "ends with its execution, %s",
    async (when) => {
      const { id, environmentId } = await waiting();
      if (when.startsWith("after")) await decide(await newest(id));
      await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
      expect((await newest(id)).state).toBe(when.startsWith("after") ? APPROVED : CANCELLED);
      expect(await stateOf(id)).toEqual(["STOPPED", "DONE CANCELLED"]);
      expect((await environmentOf(environmentId))?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
      expect(await runner.lease()).toEqual([]);
    },
  );

  test("takes no part of the action's maximum time", async () => {
    const { id } = await waiting({ perExecution: { maxTime: "600s" } });
    made.clock.now += 60 * MINUTE_MS;
    await decide(await newest(id));
    expect(actionOf(await onlyWork()).maxTime?.seconds).toBe(600n);
    expect((await onlyAction(id)).status?.waited?.seconds).toBe(3_600n);
  });
});

describe("a runner that asks for a push", () => {
  const begun = async (...steps: JsonObject[]) => {
    await workflows.start(
      await workflows.make({ action: { limits: { maxParallel: 1, maxTotal: 1 }, steps } }),
    );
    return onlyWork();
  };

  test("is refused where the step is no pullRequest step, or has not begun", async () => {
    const refused = { reason: ErrorReason.PHASE_UNSUITABLE };
    const work = await begun(task(), opening);
    await begins(work, 0);
    await expect(runner.finish(work, Outcome.WAITING, pushOf())).rejects.toMatchObject(refused);
    await runner.report(work, { stepIndex: 0, state: State.DONE });
    await expect(runner.finish(work, Outcome.WAITING, pushOf())).rejects.toMatchObject(refused);
    await begins(work, 1);
    await expect(runner.finish(work, Outcome.WAITING)).rejects.toMatchObject(refused);
  });

  test("is refused for a remote that the environment was not made from", async () => {
    const work = await begun(opening);
    await begins(work, 0);
    const push = { ...pushOf(), remote: "https://git.example.org/team/other.git" };
    await expect(runner.finish(work, Outcome.WAITING, push)).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
    await runner.finish(work, Outcome.WAITING, pushOf());
  });
});
