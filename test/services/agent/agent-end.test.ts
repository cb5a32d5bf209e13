import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import {
  AgentExecution_Phase as Phase,
  AgentExecutionFailureReason as Reason,
} from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { ServiceAccountService as ServiceAccountContract } from "#gen/service/v1/service_account_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { stopExpiredEnvironments } from "../../../src/jobs/environment-lifetime.ts";
import { blockAccount } from "../../../src/services/access/account-block.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { ServiceAccountService } from "../../../src/services/access/service-account-service.ts";
import { findTokenByHash } from "../../../src/store/identity/token.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { insertTestMember } from "../../harness/member.ts";
import { DAY_MS, openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
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

/** The state of a run, read by an administrator. */
async function stateOf(id: string) {
  const { spec, status } = (await runs.get(id)) ?? {};
  const { phase, failureReason, failureMessage } = status ?? {};
  return { phase, desiredPhase: spec?.desiredPhase, failureReason, failureMessage };
}
const failed = (failureReason: Reason, failureMessage: string) => ({
  phase: Phase.STOPPED,
  desiredPhase: Phase.STOPPED,
  failureReason,
  failureMessage,
});
const environmentIdOf = async (id: string) =>
  (await runs.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
const leased = () =>
  builderOf(made.store.reader).selectFrom("work").selectAll().where("leased_by", "is not", null).execute();

/** A member of the organization, with what it can call; it is no administrator. */
async function member(email = "second@example.org") {
  const { organizationId } = caller;
  const found = await insertTestMember(made.store, made.keys, { organizationId, email });
  const tokenId = await made.issueTokenId(found.userId);
  const itself = {
    ...userOf({ ...caller, accountId: found.accountId, tokenId }, found.userId),
    role: "member",
  } as const;
  return { ...found, caller: itself, runs: runsOn(made, itself, runner) };
}

describe("a run whose environment", () => {
  test("cannot be brought up fails with what the environment says", async () => {
    const id = await runs.start();
    const [given] = await runs.lease(WorkKind.ENVIRONMENT);
    await runs.finish(given ?? (undefined as never), Outcome.FAILED, { message: "no such branch" });
    expect(await stateOf(id)).toEqual(failed(Reason.ENVIRONMENT, "its environment failed: no such branch"));
  });

  test("is stopped by a person fails once its runner has let it go", async () => {
    const { id, given } = await runs.running();
    await own.environments.stopEnvironment({ environmentId: await environmentIdOf(id) });
    expect(await stateOf(id)).toMatchObject({ phase: Phase.RUNNING, desiredPhase: Phase.STOPPED });
    expect(await runner.renewLease(runs.named(given))).toMatchObject({ stop: true });
    await runs.finish(given, Outcome.STOPPED);
    expect(await stateOf(id)).toEqual(failed(Reason.ENVIRONMENT, "its environment was stopped"));
  });

  test("is deleted, also by force, fails", async () => {
    for (const force of [false, true]) {
      const { id, given } = await runs.running();
      await own.environments.deleteEnvironment({ environmentId: await environmentIdOf(id), force });
      await runs.finish(given, Outcome.STOPPED);
      const message = force ? "its environment was removed" : "its environment was deleted";
      expect(await stateOf(id)).toEqual(failed(Reason.ENVIRONMENT, message));
      // The deletion of the first one is not what the second waits for.
      for (const work of await runs.lease(WorkKind.ENVIRONMENT)) await runs.finish(work);
    }
  });

  test("has outlived its time fails", async () => {
    const organizations = operationsOf(OrganizationContract, new OrganizationService(made.deps), caller);
    const { organizationId } = caller;
    await organizations.updateOrganizationPolicies({
      organizationId,
      maximumEnvironmentLifetime: { seconds: BigInt(DAY_MS / 1000) },
    });
    const id = await runs.start();
    made.clock.now += DAY_MS;
    await stopExpiredEnvironments(made.store, made.clock.now);
    expect(await stateOf(id)).toEqual(failed(Reason.ENVIRONMENT, "its environment was stopped"));
  });

  test("goes down by itself fails, and another may bring it up again", async () => {
    const { id, given } = await runs.running();
    const environmentId = await environmentIdOf(id);
    await runs.work.reportAgent({
      ...runs.named(given),
      environment: { phase: EnvironmentPhase.STOPPED, failureMessage: "the disk is full" },
    });
    await runs.finish(given, Outcome.STOPPED);
    expect(await stateOf(id)).toEqual(
      failed(Reason.ENVIRONMENT, "its environment went down: the disk is full"),
    );
    const next = await runs.start({
      codeContext: { context: { case: "environmentId", value: environmentId } },
    });
    await runs.bringUp();
    await runs.takeOn();
    expect(await stateOf(next)).toMatchObject({ phase: Phase.RUNNING });
  });

  test("is stopped is started by the next run in it", async () => {
    const { environment } = await own.environments.createEnvironment({
      spec: { desiredPhase: EnvironmentPhase.STOPPED, machine: { class: runner.classId } },
    });
    const id = await runs.start({
      codeContext: { context: { case: "environmentId", value: environment?.id ?? "" } },
    });
    await runs.bringUp();
    await runs.takeOn();
    expect(await stateOf(id)).toMatchObject({ phase: Phase.RUNNING });
  });
});

describe("a blocked account", () => {
  test("has its runs stopped at once, its leases refused and the runs named in the record", async () => {
    const { accountId, runs: theirs } = await member();
    const { id, given } = await theirs.running();
    const waiting = await theirs.start();
    const mine = await runs.start();
    const receipt = await made.store.write(SYSTEM, "test", (tx) => blockAccount(tx, accountId, "left"));
    // The one that no runner took on was never started.
    expect(receipt.environmentsStopped).toBe(1);
    for (const each of [id, waiting]) {
      expect(await stateOf(each)).toEqual(failed(Reason.SERVICE, "the account of its creator was blocked"));
    }
    expect(await stateOf(mine)).toMatchObject({ phase: Phase.PENDING });
    const blocked = { reason: ErrorReason.ACCOUNT_BLOCKED };
    await expect(runner.renewLease(runs.named(given))).rejects.toMatchObject(blocked);
    await expect(runs.work.reportAgent(runs.named(given))).rejects.toMatchObject(blocked);
    await expect(runs.finish(given)).rejects.toMatchObject(blocked);
    const { audit } = await made.history(caller);
    const diff = audit.find(({ subject_id }) => subject_id === accountId)?.diff ?? "";
    expect([id, waiting, mine].map((each) => diff.includes(each))).toEqual([true, true, false]);
  });

  test("is what the token of its run answers for, in the environment of another, too", async () => {
    const { environment } = await own.environments.createEnvironment({
      spec: { machine: { class: runner.classId } },
    });
    await runs.bringUp();
    const { accountId, caller: second } = await member();
    const administrator = runsOn(made, { ...second, role: "administrator" }, runner);
    await made.store.write(SYSTEM, "test", ({ db }) =>
      builderOf(db).updateTable("member").set({ role: 1 }).where("id", "=", second.subject.id).execute(),
    );
    const codeContext = { context: { case: "environmentId", value: environment?.id ?? "" } } as const;
    await runs.start({ codeContext });
    const mine = await runs.takeOn();
    await administrator.start({ codeContext });
    const theirs = await runs.takeOn();
    const accountOf = async ({ environmentToken }: typeof mine) => {
      const hash = made.keys.readToken(environmentToken)?.hash ?? new Uint8Array();
      const { account_id, blocked_at } = (await findTokenByHash(made.store.reader, hash)) ?? {};
      return account_id && { account_id, blocked_at };
    };
    expect(await accountOf(theirs)).toEqual({ account_id: accountId, blocked_at: null });
    await made.store.write(SYSTEM, "test", (tx) => blockAccount(tx, accountId, "left"));
    // It ended with its run.
    expect(await accountOf(theirs)).toBeUndefined();
    expect(await accountOf(mine)).toEqual({ account_id: caller.accountId, blocked_at: null });
  });

  test("has runs stopped in every organization, and only its own", async () => {
    const island = await made.createOrganization("island");
    const theirRunner = await registeredRunner(made, island);
    const email = "both@example.org";
    const { accountId } = await member(email);
    const there = await insertTestMember(made.store, made.keys, {
      organizationId: island.organizationId,
      email,
    });
    const tokenId = await made.issueTokenId(there.userId);
    const itself = userOf({ organizationId: island.organizationId, accountId, tokenId }, there.userId);
    const id = await runsOn(made, itself, theirRunner).start();
    const others = runsOn(made, island, theirRunner);
    const another = await others.start();
    await made.store.write(SYSTEM, "test", (tx) => blockAccount(tx, accountId, "left"));
    expect((await others.get(id))?.status?.phase).toBe(Phase.STOPPED);
    expect((await others.get(another))?.status?.phase).toBe(Phase.PENDING);
    const { audit } = await made.history(island);
    expect(audit.find(({ subject_type }) => subject_type === "account")?.diff).toContain(id);
    const { audit: elsewhere } = await made.history(caller);
    expect(JSON.stringify(elsewhere)).not.toContain(id);
  });
});

describe("a person who leaves", () => {
  test("as a member has runs that stop at once", async () => {
    const { userId, runs: theirs } = await member();
    const { id } = await theirs.running();
    const { organizationId } = caller;
    const organizations = operationsOf(OrganizationContract, new OrganizationService(made.deps), caller);
    await organizations.removeMember({ organizationId, userId });
    expect(await stateOf(id)).toEqual(
      failed(Reason.SERVICE, "its creator is no member of the organization any more"),
    );
    expect(await leased()).toMatchObject([{ subject_id: id, stop: 1 }]);
  });

  test("as a service account has runs that stop at once", async () => {
    const accounts = operationsOf(ServiceAccountContract, new ServiceAccountService(made.deps), caller);
    const validUntil = { seconds: BigInt((made.clock.now + DAY_MS) / 1000) };
    const { serviceAccount } = await accounts.createServiceAccount({ name: "Nightly", validUntil });
    const serviceAccountId = serviceAccount?.id ?? "";
    const { token } = await accounts.createServiceAccountToken({ serviceAccountId });
    const { id: tokenId } = await builderOf(made.store.reader)
      .selectFrom("token")
      .select("id")
      .where("hash", "=", made.keys.readToken(token)?.hash ?? new Uint8Array())
      .executeTakeFirstOrThrow();
    const subject = { ...caller.subject, id: serviceAccountId, principal: Principal.SERVICE_ACCOUNT };
    const itself = { ...caller, subject, role: "service_account", accountId: "", tokenId } as const;
    const id = await runsOn(made, itself, runner).start();
    await accounts.deleteServiceAccount({ serviceAccountId });
    expect(await stateOf(id)).toEqual(failed(Reason.SERVICE, "its service account was deleted"));
  });
});

describe("a runner that is deleted", () => {
  test("ends the runs in its environments, and those that are routed to it", async () => {
    const { id } = await runs.running();
    const south = await registeredRunner(made, caller, { name: "south" });
    const southern = runsOn(made, caller, south);
    const elsewhere = await southern.start({ runnerId: south.runnerId });
    await southern.bringUp();
    await southern.takeOn();
    const environmentId = await environmentIdOf(elsewhere);
    const routed = await runs.start({
      runnerId: runner.runnerId,
      codeContext: { context: { case: "environmentId", value: environmentId } },
    });
    await own.runners.deleteRunner({ runnerId: runner.runnerId, force: true });
    expect(await stateOf(id)).toEqual(failed(Reason.ENVIRONMENT, "its environment was removed"));
    expect(await stateOf(routed)).toEqual(
      failed(Reason.SERVICE, "the runner that it was routed to was deleted"),
    );
    expect(await stateOf(elsewhere)).toMatchObject({ phase: Phase.RUNNING, failureMessage: "" });
    expect((await leased()).map(({ subject_id }) => subject_id)).toEqual([elsewhere]);
  });
});
