import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { WorkflowExecutionActionPhase as ActionPhase } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { blockAccount, unblockAccount } from "../../../src/services/access/account-block.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM, type WriteTransaction } from "../../../src/store/store.ts";
import { insertTestMember } from "../../harness/member.ts";
import { openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { LEASE_MS, registeredRunner, startedRun } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";

let made: TestStore;
let caller: Caller;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
});
afterEach(() => made.close());

const write = <T>(fn: (tx: WriteTransaction) => Promise<T>) => made.store.write(SYSTEM, "test", fn);
const named = ({ leaseId, fence }: Work) => ({ leaseId, fence });
const setPolicies = (policies: object) =>
  operationsOf(OrganizationContract, new OrganizationService(made.deps), caller).updateOrganizationPolicies({
    organizationId: caller.organizationId,
    ...policies,
  });

/** Another user of the organization, as a caller. */
async function member(administrator = false): Promise<Caller> {
  const { organizationId } = caller;
  const { userId, accountId } = await insertTestMember(made.store, made.keys, {
    organizationId,
    email: `${made.newId()}@example.org`,
    administrator,
  });
  const tokenId = await made.issueTokenId(userId);
  return { ...userOf({ organizationId, accountId, tokenId }, userId), role: "member" };
}

describe("an action whose environment is refused", () => {
  test("waits while its executor has all the environments that a policy allows, and then runs", async () => {
    const runner = await registeredRunner(made, caller);
    await setPolicies({ maximumEnvironmentsPerUser: 1n });
    const { environments } = servicesOf(made, caller);
    const { environment } = await environments.createEnvironment({
      spec: { machine: { class: runner.classId } },
    });
    const run = await startedRun(made, caller);
    expect((await runner.lease(5)).map(({ work }) => work.case)).toEqual(["environment"]);
    const waiting = {
      status: { phase: ActionPhase.PENDING, warnings: [{ reason: "waiting_for_environment_limit" }] },
    };
    expect(await run.actions()).toMatchObject([waiting]);
    await environments.deleteEnvironment({ environmentId: environment?.id ?? "", force: true });
    made.clock.now += 4_999;
    expect(await runner.lease(5)).toEqual([]);
    made.clock.now += 1;
    expect((await runner.lease(5)).map(({ work }) => work.case)).toEqual(["action"]);
    expect((await run.actions())[0]?.status?.warnings).toHaveLength(1);
  });

  test("fails when another policy forbids it, with what forbade it", async () => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, await member());
    await setPolicies({ membersRequireProjects: true });
    expect(await runner.lease()).toEqual([]);
    expect(await run.actions()).toMatchObject([
      {
        status: {
          phase: ActionPhase.DONE,
          attempt: 0,
          failures: [{ reason: "environment_refused", meta: { field_path: "membersRequireProjects" } }],
        },
      },
    ]);
    expect(await run.execution()).toMatchObject({ status: { failedActionCount: 1 } });
  });

  test("fails when its class was disabled after it was queued, and its fellow goes on", async () => {
    const runner = await registeredRunner(made, caller);
    const run = await startedRun(made, caller, { environmentClassId: runner.classId });
    const other = await startedRun(made, caller);
    await servicesOf(made, caller).configuration.updateEnvironmentClass({
      environmentClassId: runner.classId,
      enabled: false,
    });
    expect((await runner.lease(5)).map(({ work }) => work.case)).toEqual(["action"]);
    expect((await run.actions())[0]?.status?.failures).toMatchObject([{ reason: "environment_refused" }]);
    expect((await other.actions())[0]?.status?.phase).toBe(ActionPhase.RUNNING);
  });

  test("fails when its executor left the organization", async () => {
    const runner = await registeredRunner(made, caller);
    const executor = await member();
    const run = await startedRun(made, executor);
    await write(({ db, now }) =>
      builderOf(db)
        .updateTable("member")
        .set({ left_at: now })
        .where("id", "=", executor.subject.id)
        .execute(),
    );
    expect(await runner.lease()).toEqual([]);
    const actions = await startedRun(made, caller).then(() =>
      builderOf(made.store.reader).selectFrom("workflow_action").select("progress").orderBy("id").execute(),
    );
    expect(JSON.parse(actions[0]?.progress ?? "{}").failures).toMatchObject([{ reason: "executor_unfit" }]);
    expect(run.workflowExecutionId).not.toBe("");
  });
});

describe("blocking the account of an executor", () => {
  test("answers each call on its leases so, and cleans up behind it", async () => {
    const runner = await registeredRunner(made, caller);
    const executor = await member();
    const run = await startedRun(made, executor, { actions: 2, maxParallel: 1 });
    const given = await runner.leaseOne();
    await write((tx) => blockAccount(tx, executor.accountId, "left"));
    const calls = [
      runner.renewLease(named(given)),
      runner.reportProgress(named(given)),
      runner.finishWork({ ...named(given), outcome: Outcome.DONE }),
      runner.getHostCredential({ ...named(given), host: "git.example.org" }),
    ];
    const blocked = expect.objectContaining({ reason: ErrorReason.ACCOUNT_BLOCKED });
    expect(await Promise.allSettled(calls)).toEqual(Array(4).fill({ status: "rejected", reason: blocked }));
    const [cleaning, ...others] = await runner.lease(5);
    expect([cleaning?.work.case, others]).toEqual(["environment", []]);
    if (cleaning) await runner.finishWork({ ...named(cleaning), outcome: Outcome.DONE });
    made.clock.now += LEASE_MS;
    expect(await endExpiredLeases(made.store, made.clock.now)).toBe(1);
    expect(await builderOf(made.store.reader).selectFrom("work").selectAll().execute()).toEqual([]);
    expect((await servicesOf(made, caller).environments.listEnvironments({})).environments).toEqual([]);
    expect(run.workflowExecutionId).not.toBe("");
  });

  test("and unblocking it soon lets the runner end what it still holds, and nothing more", async () => {
    const runner = await registeredRunner(made, caller);
    const executor = await member();
    await startedRun(made, executor);
    const given = await runner.leaseOne();
    await write((tx) => blockAccount(tx, executor.accountId, "left"));
    await write((tx) => unblockAccount(tx, executor.accountId));
    expect(await runner.renewLease(named(given))).toMatchObject({ stop: true });
    expect(
      await runner.reportProgress({ ...named(given), logs: [{ data: new Uint8Array(9) }] }),
    ).toMatchObject({
      stop: true,
    });
    expect(await builderOf(made.store.reader).selectFrom("step_log").selectAll().execute()).toEqual([]);
    await expect(
      runner.getHostCredential({ ...named(given), host: "git.example.org" }),
    ).rejects.toMatchObject({ reason: ErrorReason.LEASE_LOST });
    await runner.finishWork({ ...named(given), outcome: Outcome.STOPPED });
    expect(await builderOf(made.store.reader).selectFrom("environment").selectAll().execute()).toEqual([]);
    expect(await builderOf(made.store.reader).selectFrom("work").selectAll().execute()).toEqual([]);
  });
});

describe("deleting a runner", () => {
  test("gives what it held to others, and fails what only it could have done", async () => {
    const gone = await registeredRunner(made, caller, { name: "gone" });
    const run = await startedRun(made, caller);
    const bound = await startedRun(made, caller, {
      actions: 3,
      maxParallel: 1,
      environmentClassId: gone.classId,
    });
    expect(await gone.lease(1)).toHaveLength(1);
    await servicesOf(made, caller).runners.deleteRunner({ runnerId: gone.runnerId, force: true });
    expect(await run.actions()).toMatchObject([
      { status: { phase: ActionPhase.PENDING, warnings: [{ reason: "attempt_lost" }] } },
    ]);
    const reasons = (await bound.actions()).map(({ status }) => status?.failures[0]?.reason);
    expect(reasons).toEqual(["runner_removed", "environment_class_unusable", "environment_class_unusable"]);
    const other = await registeredRunner(made, caller, { name: "other" });
    expect(await other.leaseOne()).toMatchObject({ attempt: 2 });
  });
});
