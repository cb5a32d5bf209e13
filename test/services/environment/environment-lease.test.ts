import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { RunnerPhase } from "#gen/service/v1/runner_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { blockAccount } from "../../../src/services/access/account-block.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { insertTestMember } from "../../harness/member.ts";
import { DAY_MS, openTestStore, type TestStore, userOf } from "../../harness/test-store.ts";
import { LEASE_MS, type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { type Services, servicesOf } from "../services.ts";

let made: TestStore;
let caller: Caller;
let own: Services;
let runner: RegisteredRunner;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  own = servicesOf(made, caller);
  runner = await registeredRunner(made, caller);
});
afterEach(() => made.close());

const named = ({ leaseId, fence }: Work) => ({ leaseId, fence });
const create = async (desiredPhase = Phase.RUNNING, by = own) =>
  (await by.environments.createEnvironment({ spec: { desiredPhase, machine: { class: runner.classId } } }))
    .environment?.id ?? "";
const environmentNow = async (environmentId: string) =>
  (await own.environments.getEnvironment({ environmentId })).environment;
const finish = (given: Work, outcome = Outcome.DONE, message = "") =>
  runner.finishWork({ ...named(given), outcome, failure: { reason: message && "no_disk", message } });
const report = (given: Work, phase: Phase) =>
  runner.reportProgress({ ...named(given), environment: { phase } });
const expire = async () => {
  made.clock.now += LEASE_MS;
  await endExpiredLeases(made.store, made.clock.now);
};
const nothingQueued = async () =>
  expect(await builderOf(made.store.reader).selectFrom("work").selectAll().execute()).toEqual([]);

/** An environment that runs. */
async function running(): Promise<string> {
  const environmentId = await create();
  await finish(await runner.leaseOne());
  return environmentId;
}

describe("an environment", () => {
  test("is given to the runner of its class, and moves through its phases as that reports", async () => {
    const environmentId = await create();
    const given = await runner.leaseOne();
    expect(given.work).toMatchObject({
      case: "environment",
      value: {
        environment: {
          id: environmentId,
          spec: { desiredPhase: Phase.RUNNING },
          metadata: { runnerId: runner.runnerId },
        },
      },
    });
    expect(made.keys.readToken(given.environmentToken)?.kind).toBe("environment");
    const versions: bigint[] = [];
    for (const phase of [Phase.CREATING, Phase.STARTING, Phase.RUNNING]) {
      await report(given, phase);
      const { status } = (await environmentNow(environmentId)) ?? {};
      expect(status?.phase).toBe(phase);
      versions.push(status?.statusVersion ?? 0n);
    }
    expect(versions).toEqual([2n, 3n, 4n]);
    await report(given, Phase.RUNNING);
    await finish(given);
    expect((await environmentNow(environmentId))?.status).toMatchObject({
      statusVersion: 4n,
      phase: Phase.RUNNING,
    });
    await nothingQueued();
  });

  test("without a class goes to any runner, and stays with it", async () => {
    const { environment } = await own.environments.createEnvironment({});
    const other = await registeredRunner(made, caller, { name: "south" });
    await runner.leaseOne();
    await expire();
    expect(await other.lease()).toEqual([]);
    expect((await runner.leaseOne()).attempt).toBe(2);
    expect((await environmentNow(environment?.id ?? ""))?.metadata?.runnerId).toBe(runner.runnerId);
  });

  test("that is wanted stopped when it is created is given to nobody", async () => {
    const environmentId = await create(Phase.STOPPED);
    expect(await runner.lease()).toEqual([]);
    await own.environments.startEnvironment({ environmentId });
    expect((await runner.lease()).length).toBe(1);
  });

  test("waits while its runner is paused", async () => {
    await create();
    const { runnerId } = runner;
    await own.runners.updateRunner({ runnerId, spec: { desiredPhase: RunnerPhase.INACTIVE } });
    expect(await runner.lease()).toEqual([]);
    await own.runners.updateRunner({ runnerId, spec: { desiredPhase: RunnerPhase.ACTIVE } });
    expect(await runner.lease()).toHaveLength(1);
  });

  test("is stopped, started again and deleted by the same way", async () => {
    const environmentId = await running();
    await own.environments.stopEnvironment({ environmentId });
    const stopping = await runner.leaseOne();
    expect(stopping.environmentToken).toBe("");
    await report(stopping, Phase.STOPPING);
    await finish(stopping);
    expect((await environmentNow(environmentId))?.status?.phase).toBe(Phase.STOPPED);
    await own.environments.startEnvironment({ environmentId });
    await finish(await runner.leaseOne());
    expect((await environmentNow(environmentId))?.status?.phase).toBe(Phase.RUNNING);
    await own.environments.deleteEnvironment({ environmentId });
    const deleting = await runner.leaseOne();
    await report(deleting, Phase.DELETING);
    expect((await environmentNow(environmentId))?.status?.phase).toBe(Phase.DELETING);
    await finish(deleting);
    await expect(environmentNow(environmentId)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    await nothingQueued();
  });

  test("is wanted no more when it is stopped and started again before a runner comes to it", async () => {
    const environmentId = await running();
    await own.environments.stopEnvironment({ environmentId });
    await own.environments.startEnvironment({ environmentId });
    await nothingQueued();
    const waiting = await create();
    await own.environments.deleteEnvironment({ environmentId: waiting });
    await nothingQueued();
  });

  test("is deleted by its runner, not at once, from the moment that one has a lease on it", async () => {
    const environmentId = await create();
    const given = await runner.leaseOne();
    await own.environments.deleteEnvironment({ environmentId });
    expect(await runner.renewLease(named(given))).toMatchObject({ stop: true });
    await finish(given, Outcome.STOPPED);
    const deleting = await runner.leaseOne();
    expect(deleting.work).toMatchObject({
      value: { environment: { spec: { desiredPhase: Phase.DELETED } } },
    });
    await finish(deleting);
    await nothingQueued();
  });

  test("that is deleted by force takes the lease with it", async () => {
    const environmentId = await create();
    const given = await runner.leaseOne();
    await own.environments.deleteEnvironment({ environmentId, force: true });
    await expect(runner.renewLease(named(given))).rejects.toMatchObject({ reason: ErrorReason.LEASE_LOST });
    const tokens = await builderOf(made.store.reader)
      .selectFrom("token")
      .selectAll()
      .where("kind", "=", "environment")
      .execute();
    expect(tokens).toEqual([]);
  });

  test("receives the phases that it cannot reach", async () => {
    await create();
    const given = await runner.leaseOne();
    for (const phase of [Phase.UPDATING, Phase.DELETING, Phase.DELETED]) {
      await expect(report(given, phase)).rejects.toMatchObject({ reason: ErrorReason.PHASE_UNSUITABLE });
    }
    await expect(
      runner.reportProgress({ ...named(given), steps: [{ stepIndex: 0, state: 1 }] }),
    ).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE, metadata: { field: "steps" } });
    await expect(
      runner.reportProgress({ ...named(given), logs: [{ data: new Uint8Array(1) }] }),
    ).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE, metadata: { field: "logs" } });
  });
});

test("the token of an environment holds for 24 hours, and the next lease on the environment ends it", async () => {
  const tokens = async () =>
    (
      await builderOf(made.store.reader)
        .selectFrom("token")
        .selectAll()
        .where("kind", "=", "environment")
        .execute()
    ).map(({ subject_id, expires_at }) => ({ subject_id, validForMs: expires_at - made.clock.now }));
  const environmentId = await create();
  await runner.leaseOne();
  expect(await tokens()).toEqual([{ subject_id: environmentId, validForMs: DAY_MS }]);
  await expire();
  expect(await tokens()).toEqual([{ subject_id: environmentId, validForMs: DAY_MS - LEASE_MS }]);
  const again = await runner.leaseOne();
  expect(await tokens()).toEqual([{ subject_id: environmentId, validForMs: DAY_MS }]);
  await finish(again);
  await own.environments.stopEnvironment({ environmentId });
  await runner.leaseOne();
  expect(await tokens()).toEqual([]);
});

describe("an environment that could not be", () => {
  test("brought up is stopped, and wanted so, with what went wrong", async () => {
    const environmentId = await create();
    await finish(await runner.leaseOne(), Outcome.FAILED, "the repository was not found");
    expect(await environmentNow(environmentId)).toMatchObject({
      spec: { desiredPhase: Phase.STOPPED, specVersion: 2n },
      status: { phase: Phase.STOPPED, failureMessage: ["the repository was not found"] },
    });
    await nothingQueued();
    await own.environments.startEnvironment({ environmentId });
    await finish(await runner.leaseOne());
    expect((await environmentNow(environmentId))?.status).toMatchObject({
      phase: Phase.RUNNING,
      failureMessage: [],
    });
  });

  test.each(["lost", "released"])("brought up in three attempts that were %s has failed", async (how) => {
    const environmentId = await create();
    for (const attempt of [1, 2, 3]) {
      const given = await runner.leaseOne();
      expect(given.attempt).toBe(attempt);
      if (how === "lost") await expire();
      else await finish(given, Outcome.RELEASED);
    }
    expect(await environmentNow(environmentId)).toMatchObject({
      spec: { desiredPhase: Phase.STOPPED },
      status: { phase: Phase.STOPPED, failureMessage: [expect.stringMatching(/in each of 3 attempts/)] },
    });
    await nothingQueued();
  });

  test("deleted is tried again in a while, three times, and then left to people", async () => {
    const environmentId = await running();
    await own.environments.deleteEnvironment({ environmentId });
    for (const attempt of [1, 2, 3]) {
      const given = await runner.leaseOne();
      expect(given.attempt).toBe(attempt);
      await finish(given, Outcome.FAILED, `the disk is busy ${attempt}`);
      if (attempt < 3) expect(await runner.lease()).toEqual([]);
      made.clock.now += 10_000;
    }
    expect(await environmentNow(environmentId)).toMatchObject({
      spec: { desiredPhase: Phase.DELETED },
      status: {
        phase: Phase.RUNNING,
        failureMessage: ["the disk is busy 1", "the disk is busy 2", "the disk is busy 3"],
      },
    });
    await nothingQueued();
    await own.environments.deleteEnvironment({ environmentId, force: true });
  });
});

test("an environment of an account that is blocked is stopped all the same", async () => {
  const { organizationId } = caller;
  const { userId, accountId } = await insertTestMember(made.store, made.keys, {
    organizationId,
    email: "sam@example.org",
    administrator: true,
  });
  const sam = servicesOf(
    made,
    userOf({ organizationId, accountId, tokenId: await made.issueTokenId(userId) }, userId),
  );
  const environmentId = await create(Phase.RUNNING, sam);
  const given = await runner.leaseOne();
  await report(given, Phase.STARTING);
  await made.store.write(SYSTEM, "test", (tx) => blockAccount(tx, accountId, "left"));
  await expect(runner.renewLease(named(given))).rejects.toMatchObject({
    reason: ErrorReason.ACCOUNT_BLOCKED,
  });
  await expire();
  const stopping = await runner.leaseOne();
  expect(stopping.environmentToken).toBe("");
  await finish(stopping);
  expect((await environmentNow(environmentId))?.status?.phase).toBe(Phase.STOPPED);
  await nothingQueued();
});
