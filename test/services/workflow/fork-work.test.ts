import type { JsonObject } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  type Approval,
  ApprovalKind,
  ApprovalState as State,
  ApprovalDeciders_Who as Who,
} from "#gen/service/v1/approval_pb.js";
import { DecideApprovalRequest_Decision as Decision } from "#gen/service/v1/approval_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { RunnerPolicy } from "#gen/service/v1/runner_pb.js";
import { WorkflowExecutionPhase as Phase } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { parsePullRequestDelivery } from "../../../src/domain/workflow/trigger/pull-request-event.ts";
import { expireApprovals } from "../../../src/jobs/agent-timers.ts";
import { removeDeletedWorkflows } from "../../../src/jobs/workflow-removal.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { fireWebhook } from "../../../src/services/workflow/trigger/webhook-triggers.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM, within } from "../../../src/store/store.ts";
import { findWorkflow } from "../../../src/store/workflow/workflow.ts";
import { DAY_MS, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { type Changes, GITHUB_PULL_REQUEST, openedPullRequest } from "../../harness/webhook-payload.ts";
import { approvalsOf, colleague, decision } from "../approval/approvals.ts";
import {
  type AtWork,
  action,
  actionOf,
  runnerOf,
  task,
  type Workflows,
  workflowsOf,
} from "./running-workflow.ts";

let made: TestStore;
let caller: Caller;
let workflows: Workflows;
let runner: AtWork;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  workflows = workflowsOf(made, caller);
  runner = await runnerOf(made, caller);
  await keep(runner, RunnerPolicy.FORK_WORK, RunnerPolicy.FORK_EGRESS);
});
afterEach(() => made.close());

const keep = ({ operations }: AtWork, ...policies: RunnerPolicy[]) =>
  operations.heartbeat({ version: "2", keptPolicies: { policies } });
const SAME: Changes = { "pull_request.head.repo.id": 71004 };
const listening = (forkWork?: JsonObject) =>
  workflows.make({
    triggers: [{ pullRequest: forkWork ? { forkWork } : {}, context: { fromTrigger: {} } }],
    action: action(1, 1, task()),
  });

/** Delivers the event of a pull request that was opened, as its host does; the execution that it starts. */
async function open(workflowId: string, changes: Changes = {}, by = caller) {
  const body = Buffer.from(JSON.stringify(openedPullRequest(changes)));
  const { delivery } = parsePullRequestDelivery(GITHUB_PULL_REQUEST, body);
  const workflow = await findWorkflow(made.store.reader, caller, workflowId);
  if (!delivery || !workflow) throw new Error("there is no delivery or no workflow");
  const { organizationId, subject: creator } = by;
  const parsed = { kind: "pull_request", delivery } as const;
  const [event] = await made.store.write(
    SYSTEM,
    "test",
    (tx) => fireWebhook(tx, { organizationId, workflow, parsed, creator, sourceSetters: [creator] }),
    within(caller),
  );
  return workflows.execution(event?.workflowExecutionId ?? "");
}
const askedOf = async (executionId: string): Promise<Approval[]> =>
  (await approvalsOf(made, caller).listApprovals({ filter: { workflowExecutionIds: [executionId] } }))
    .approvals;
async function onlyAsked(executionId: string): Promise<Approval> {
  const [found, ...others] = await askedOf(executionId);
  if (!found || others.length > 0) throw new Error("not exactly one approval was asked for");
  return found;
}
const stateOf = async (executionId: string) => {
  const { status } = await workflows.execution(executionId);
  return [Phase[status?.phase ?? 0], ...(status?.failures ?? []).map(({ reason }) => reason)];
};
const warningsOf = async (executionId: string) =>
  ((await workflows.execution(executionId)).status?.warnings ?? []).map(({ reason }) => reason);

describe("the event of a pull request from a fork", () => {
  test("waits for an approval that names its commit, and begins then", async () => {
    const { id } = await open(await listening());
    expect(await runner.lease()).toEqual([]);
    expect(await workflows.actions(id)).toEqual([]);
    expect(await warningsOf(id)).toEqual(["fork_approval_asked"]);
    const asked = await onlyAsked(id);
    expect(asked).toMatchObject({ kind: ApprovalKind.STEP, state: State.PENDING, creator: caller.subject });
    expect(asked.title).toBe(
      "Run the workflow for the pull request 41 from a fork, at the commit 5b1f6f3a9c0d4e8271a6b3c95d20e4f78a9b6c1d",
    );
    expect(asked.requestJson).toContain("Let the foghorn rest at night");
    await approvalsOf(made, caller).decideApproval(decision(asked));
    const [work] = await runner.lease();
    if (!work) throw new Error("there is no work");
    expect(work.environmentToken).toBe("");
    expect(actionOf(work).environment?.metadata).toMatchObject({ secretsWithheld: true, forkEgress: 1 });
    await runner.complete(work);
    expect(await stateOf(id)).toEqual(["COMPLETED"]);
  });

  test.each([
    ["is denied", Decision.DENY, "approval_denied"],
    ["is decided by nobody in time", undefined, "approval_expired"],
  ])("fails where it %s, and nothing of it runs", async (_, decided, reason) => {
    const { id } = await open(await listening());
    const asked = await onlyAsked(id);
    if (decided !== undefined) {
      await approvalsOf(made, caller).decideApproval(decision(asked, { decision: decided, reason: "no" }));
    } else {
      made.clock.now += DAY_MS;
      await expireApprovals(made.store, made.clock.now);
    }
    expect(await stateOf(id)).toEqual(["COMPLETED", reason]);
    expect(await runner.lease()).toEqual([]);
    expect(await workflows.actions(id)).toEqual([]);
  });

  test("is decided by who may decide it alone", async () => {
    const { id } = await open(await listening());
    const asked = await onlyAsked(id);
    const member = await colleague(made, caller, "b@example.org");
    await expect(approvalsOf(made, member).decideApproval(decision(asked))).rejects.toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
    });
    const stranger = await made.createOrganization("island");
    await expect(approvalsOf(made, stranger).decideApproval(decision(asked))).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
    expect(await stateOf(id)).toEqual(["PENDING"]);
  });

  test("is not decided by a member who delivered it, unless policies name that member", async () => {
    const member = await colleague(made, caller, "b@example.org");
    const deliver = async () => (await open(await listening(), {}, member)).id;
    const asked = await onlyAsked(await deliver());
    expect(asked.creator).toEqual(member.subject);
    await expect(approvalsOf(made, member).decideApproval(decision(asked))).rejects.toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
    });
    await approvalsOf(made, caller).decideApproval(decision(asked));
    const userIds = [member.subject.id];
    const steps = { deciders: { who: Who.USERS, userIds } };
    await operationsOf(
      OrganizationContract,
      new OrganizationService(made.deps),
      caller,
    ).updateOrganizationPolicies({
      organizationId: caller.organizationId,
      agentPolicy: { approvals: { steps } },
    });
    const named = await onlyAsked(await deliver());
    await approvalsOf(made, member).decideApproval(decision(named));
    expect((await onlyAsked(named.asker?.workflowExecutionId ?? "")).state).toBe(State.APPROVED);
  });

  test("is asked for no more once the execution is cancelled", async () => {
    const { id } = await open(await listening());
    await workflows.cancelWorkflowExecution({ workflowExecutionId: id });
    const asked = await onlyAsked(id);
    expect(asked.state).toBe(State.CANCELLED);
    await expect(approvalsOf(made, caller).decideApproval(decision(asked))).rejects.toMatchObject({
      reason: ErrorReason.PHASE_UNSUITABLE,
    });
    expect(await stateOf(id)).toEqual(["STOPPED"]);
  });

  test("takes its approval along when its workflow is deleted", async () => {
    const workflowId = await listening();
    const { id } = await open(workflowId);
    await workflows.deleteWorkflow({ workflowId, force: true });
    expect(await removeDeletedWorkflows(made.store)).toBe(1);
    expect(await askedOf(id)).toEqual([]);
  });

  test("that does not tell its origin counts as one from a fork", async () => {
    const { id } = await open(await listening(), { "pull_request.head.repo": null });
    expect((await onlyAsked(id)).title).toMatch(
      /^Run the workflow for the pull request 41 (from a fork|of unknown origin),/,
    );
    expect(await runner.lease()).toEqual([]);
  });
});

describe("nobody is asked", () => {
  test("about a pull request of the same repository", async () => {
    const { id, spec } = await open(await listening(), SAME);
    expect(spec?.trigger?.forkWork).toBeUndefined();
    expect([await askedOf(id), await warningsOf(id)]).toEqual([[], []]);
    expect((await runner.lease())[0]?.environmentToken).toMatch(/^cr_env_/);
  });

  test("where the trigger says so, and what it may reach is what that says", async () => {
    const forkWork = { approval: "FORK_APPROVAL_NOT_REQUIRED", egress: "FORK_EGRESS_POLICY" };
    const { id } = await open(await listening(forkWork));
    expect([await askedOf(id), await warningsOf(id)]).toEqual([[], []]);
    const [work] = await runner.lease();
    expect(work && actionOf(work).environment?.metadata).toMatchObject({
      secretsWithheld: true,
      forkEgress: 2,
    });
  });

  test("by a trigger that an earlier release has stored, with a warning", async () => {
    const workflowId = await listening();
    await made.store.write(SYSTEM, "test", async ({ db }) => {
      const row = builderOf(db).selectFrom("workflow").select("body").where("id", "=", workflowId);
      const body = JSON.parse((await row.executeTakeFirstOrThrow()).body);
      delete body.spec.triggers[0].pullRequest.forkWork;
      const changed = { body: JSON.stringify(body) };
      await builderOf(db).updateTable("workflow").set(changed).where("id", "=", workflowId).execute();
    });
    const { id } = await open(workflowId);
    expect([await askedOf(id), await warningsOf(id)]).toEqual([[], ["fork_not_asked"]]);
    const [work] = await runner.lease();
    const { metadata } = (work && actionOf(work).environment) ?? {};
    expect([work?.environmentToken, metadata?.secretsWithheld, metadata?.forkEgress]).toEqual([
      "",
      true,
      undefined,
    ]);
    // Written again, it asks.
    const { workflow } = await workflows.getWorkflow({ workflowId });
    await workflows.updateWorkflow({ workflowId, triggers: workflow?.spec?.triggers ?? [] });
    const again = await open(workflowId, { "pull_request.head.sha": "a".repeat(40) });
    expect(await askedOf(again.id)).toHaveLength(1);
  });
});

describe("the work that it begins", () => {
  const allowed = { approval: "FORK_APPROVAL_NOT_REQUIRED" };
  const waitsFor = async (executionId: string) =>
    (await workflows.actions(executionId)).flatMap(({ status }) => status?.warnings ?? []);

  test("goes only to runners that say they keep what holds for it, and delays no other work", async () => {
    await runner.operations.heartbeat({ version: "1" });
    const fork = await open(await listening({ ...allowed, egress: "FORK_EGRESS_POLICY" }));
    const other = await workflows.start(await workflows.make());
    const [work, ...more] = await runner.lease();
    expect([work && actionOf(work).workflowExecutionId, more]).toEqual([other.id, []]);
    expect(await waitsFor(fork.id)).toMatchObject([
      { reason: "waiting_for_runner", meta: { policies: "forkWork" } },
    ]);
    await keep(runner, RunnerPolicy.FORK_WORK);
    const [leased] = await runner.lease();
    expect(leased && actionOf(leased).workflowExecutionId).toBe(fork.id);
  });

  test("waits for a runner that isolates it where it may reach its repositories alone", async () => {
    await keep(runner, RunnerPolicy.FORK_WORK);
    const { id } = await open(await listening(allowed));
    expect(await runner.lease()).toEqual([]);
    expect(await waitsFor(id)).toMatchObject([{ meta: { policies: "forkWork,forkWork.egress" } }]);
  });
});
