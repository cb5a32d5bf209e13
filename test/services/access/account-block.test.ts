import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { AccountService as Contract } from "#gen/service/v1/account_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { blockAccount } from "../../../src/services/access/account-block.ts";
import { AccountService } from "../../../src/services/access/account-service.ts";
import { findEnvironment, updateEnvironment } from "../../../src/store/environment/environment.ts";
import { insertSubscription } from "../../../src/store/identity/subscription.ts";
import { findTokenById } from "../../../src/store/identity/token.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { OPERATOR, SYSTEM } from "../../../src/store/store.ts";
import { insertServiceAccountToken } from "../../harness/machine-token.ts";
import { insertTestMember, type TestMember } from "../../harness/member.ts";
import { openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

let testStore: TestStore;
let administrator: Caller;
let member: TestMember;
let caller: Caller;
beforeEach(async () => {
  testStore = openTestStore();
  administrator = await testStore.createOrganization("harbour");
  member = await join("ann@example.org");
  const tokenId = await testStore.issueTokenId(member.userId);
  caller = {
    ...userOf({ ...administrator, accountId: member.accountId, tokenId }, member.userId),
    role: "member",
  };
});
afterEach(() => testStore.close());

const { CREATING, RUNNING, STOPPED, DELETED } = EnvironmentPhase;
const accounts = (as = administrator) => operationsOf(Contract, new AccountService(testStore.deps), as);
const block = (reason: string, accountId = member.accountId) =>
  accounts().blockAccount({ accountId, reason });
const unblock = () => accounts().unblockAccount({ accountId: member.accountId });

function join(email: string, administrates = false): Promise<TestMember> {
  const { organizationId } = administrator;
  const { store, keys } = testStore;
  return insertTestMember(store, keys, { organizationId, email, administrator: administrates });
}

async function installationRows(type: string) {
  const rows = builderOf(testStore.store.reader)
    .selectFrom("audit_log")
    .selectAll()
    .where("organization_id", "is", null);
  return rows.where("subject_type", "=", type).orderBy("sequence").execute();
}

async function organizationRows(type: string, { organizationId } = administrator) {
  const { audit } = await testStore.history({ organizationId });
  return audit.filter((row) => row.subject_type === type && row.operation.endsWith("BlockAccount"));
}

/** A service account with a token that an account made; the token's id. */
async function serviceAccountToken(
  creatorAccountId: string,
  description: string,
  { organizationId } = administrator,
): Promise<string> {
  const { store, keys } = testStore;
  const of = { organizationId, creatorAccountId, description };
  return (await insertServiceAccountToken(store, keys, of)).id;
}

/** An environment of the member in a phase that only runners bring about, and wanted in another. */
async function environment(phase: EnvironmentPhase, desired: EnvironmentPhase, as = caller): Promise<string> {
  const services = servicesOf(testStore, as);
  const { environment } = await services.environments.createEnvironment({ name: "e" });
  if (!environment?.spec || !environment.status) throw new Error("no environment");
  const after = structuredClone(environment);
  if (after.spec) after.spec.desiredPhase = desired;
  if (after.status) {
    after.status.phase = phase;
    // As a runner leaves it that has taken the environment on.
    after.status.statusVersion += 1n;
  }
  await testStore.store.write(OPERATOR, "test", (tx) => updateEnvironment(tx, as, environment, after));
  return environment.id;
}

async function wanted(id: string) {
  const found = await findEnvironment(testStore.store.reader, administrator, id);
  return [found?.spec?.desiredPhase, found?.spec?.specVersion];
}

describe("blocking an account", () => {
  test("stops what runs of it, and counts that", async () => {
    const creating = await environment(CREATING, RUNNING);
    const stopping = await environment(RUNNING, STOPPED);
    const starting = await environment(STOPPED, RUNNING);
    const stopped = await environment(STOPPED, STOPPED);
    const leaving = await environment(RUNNING, DELETED);
    const foreign = await environment(RUNNING, RUNNING, administrator);
    expect((await block("left")).environmentsStopped).toBe(3);
    expect(await wanted(creating)).toEqual([STOPPED, 2n]);
    expect(await wanted(starting)).toEqual([STOPPED, 2n]);
    expect(await wanted(stopping)).toEqual([STOPPED, 1n]);
    expect(await wanted(stopped)).toEqual([STOPPED, 1n]);
    expect(await wanted(leaving)).toEqual([DELETED, 1n]);
    expect(await wanted(foreign)).toEqual([RUNNING, 1n]);
  });

  test("tells those that were never started to stop without counting them", async () => {
    const services = servicesOf(testStore, caller);
    const create = async (desiredPhase: EnvironmentPhase) =>
      (await services.environments.createEnvironment({ name: "new", spec: { desiredPhase } })).environment
        ?.id ?? "";
    const waiting = await create(RUNNING);
    const idle = await create(STOPPED);
    const started = await create(STOPPED);
    testStore.clock.now += 1;
    await services.environments.startEnvironment({ environmentId: started });
    expect((await block("left")).environmentsStopped).toBe(1);
    expect(await wanted(waiting)).toEqual([STOPPED, 2n]);
    expect(await wanted(idle)).toEqual([STOPPED, 1n]);
    expect(await wanted(started)).toEqual([STOPPED, 3n]);
  });

  test("reaches organizations that it has left, and tells each of them without the reason", async () => {
    const { store, keys } = testStore;
    const leave = async (name: string) => {
      const founded = await testStore.createOrganization(name);
      const { organizationId } = founded;
      const there = await insertTestMember(store, keys, { organizationId, email: "ann@example.org" });
      await store.write(OPERATOR, "test", (tx) =>
        builderOf(tx.db)
          .updateTable("member")
          .set({ left_at: tx.now })
          .where("id", "=", there.userId)
          .execute(),
      );
      return { founded, as: userOf({ ...founded, accountId: there.accountId }, there.userId) };
    };
    const [running, island, idle] = [await leave("running"), await leave("island"), await leave("idle")];
    await environment(RUNNING, RUNNING, running.as);
    const token = await serviceAccountToken(member.accountId, "there", island.founded);
    const receipt = await block("left");
    expect(receipt.environmentsStopped).toBe(1);
    expect(receipt.disabledServiceAccountTokens).toEqual([]);
    const disabled = await findTokenById(store.reader, token);
    expect(disabled?.disabled_at).toBe(testStore.clock.now);
    for (const { founded } of [running, island]) {
      expect(await organizationRows("account", founded)).toMatchObject([
        // The administrator is nobody there.
        { subject_id: member.accountId, actor_id: SYSTEM.id, reason: "" },
      ]);
    }
    expect(await organizationRows("account", idle.founded)).toEqual([]);
    expect(await organizationRows("account")).toMatchObject([{ reason: "left" }]);
  });

  test("disables the service account tokens that it created, and no others", async () => {
    const first = await serviceAccountToken(member.accountId, "first");
    const second = await serviceAccountToken(member.accountId, "second");
    const other = await serviceAccountToken(administrator.accountId, "other");
    const { disabledServiceAccountTokens: listed } = await block("left");
    expect(listed.map(({ id, description }) => [id, description])).toEqual([
      [first, "first"],
      [second, "second"],
    ]);
    expect(listed[0]?.lastUsed).toBeDefined();
    const rows = await builderOf(testStore.store.reader)
      .selectFrom("token")
      .select(["id", "disabled_at"])
      .execute();
    const disabled = rows.filter(({ disabled_at }) => disabled_at !== null).map(({ id }) => id);
    expect(disabled.toSorted()).toEqual([first, second]);
    expect(disabled).not.toContain(other);
    expect((await organizationRows("service_account_token")).map(({ subject_id }) => subject_id)).toEqual([
      first,
      second,
    ]);
  });

  test("cancels its subscriptions once", async () => {
    const add = (name: string) =>
      testStore.store.write(OPERATOR, "test", async (tx) => {
        await insertSubscription(tx, { id: tx.newId(), account_id: member.accountId, name });
      });
    await add("small");
    await add("large");
    expect((await block("left")).subscriptionsCancelled).toBe(2);
    const rows = await builderOf(testStore.store.reader)
      .selectFrom("subscription")
      .select("cancelled_at")
      .execute();
    expect(rows).toEqual([{ cancelled_at: testStore.clock.now }, { cancelled_at: testStore.clock.now }]);
    await unblock();
    expect((await block("again")).subscriptionsCancelled).toBe(0);
    expect((await installationRows("subscription")).map(({ diff }) => Object.keys(JSON.parse(diff)))).toEqual(
      [["accountId", "name"], ["accountId", "name"], ["cancelledAt"], ["cancelledAt"]],
    );
  });

  test("again answers the same receipt and records the new reason", async () => {
    await environment(CREATING, RUNNING);
    await serviceAccountToken(member.accountId, "first");
    const receipt = await block("left the team");
    testStore.clock.now += 1000;
    expect(await block("found more")).toEqual(receipt);
    expect(receipt).toMatchObject({ environmentsStopped: 1, disabledServiceAccountTokens: [{}] });
    for (const rows of [await organizationRows("account"), await installationRows("account")]) {
      const ours = rows.filter(({ subject_id, reason }) => subject_id === member.accountId && reason);
      expect(ours.map(({ reason, diff }) => [reason, Object.keys(JSON.parse(diff))])).toEqual([
        ["left the team", ["blockedAt"]],
        ["found more", []],
      ]);
    }
  });

  test("writes a row in every organization of the account, by its own member, and one in the installation's chain", async () => {
    const island = await testStore.createOrganization("island");
    const { store, keys } = testStore;
    const { organizationId } = island;
    await insertTestMember(store, keys, { organizationId, email: "ann@example.org" });
    const email = "harbour@example.org";
    const there = await insertTestMember(store, keys, { organizationId, email, administrator: true });
    await block("left");
    for (const [rows, actor_id] of [
      [await organizationRows("account"), administrator.subject.id],
      [await organizationRows("account", island), there.userId],
      [(await installationRows("account")).slice(-1), administrator.subject.id],
    ] as const) {
      expect(rows).toMatchObject([{ subject_id: member.accountId, reason: "left", actor_id }]);
    }
  });
});

describe("unblocking an account", () => {
  test("gives back access and nothing else, and the next block has a receipt of its own", async () => {
    const id = await environment(CREATING, RUNNING);
    await serviceAccountToken(member.accountId, "first");
    await block("left");
    await unblock();
    expect(await wanted(id)).toEqual([STOPPED, 2n]);
    const tokens = builderOf(testStore.store.reader).selectFrom("token").select("disabled_at");
    expect(await tokens.where("kind", "=", "service_account").execute()).toEqual([
      { disabled_at: testStore.clock.now },
    ]);
    const account = builderOf(testStore.store.reader).selectFrom("account").select("blocked_at");
    expect(await account.where("id", "=", member.accountId).execute()).toEqual([{ blocked_at: null }]);
    // The environment's phase stays CREATING until a runner reports, so it counts again.
    expect(await block("again")).toMatchObject({ environmentsStopped: 1, disabledServiceAccountTokens: [] });
  });

  test("of one that is not blocked changes nothing", async () => {
    const before = await testStore.history(administrator);
    await unblock();
    expect(await testStore.history(administrator)).toEqual(before);
  });
});

describe("the last administrator of an organization", () => {
  const asOperator = (accountId: string) =>
    testStore.store.write(OPERATOR, "chartroom account block", (tx) => blockAccount(tx, accountId, "left"));
  const refusal = ({ organizationId }: Pick<Caller, "organizationId">) => ({
    reason: ErrorReason.LAST_ADMINISTRATOR,
    metadata: { organization_id: organizationId },
  });

  test("is not blocked by the operator either, and nothing of it happens", async () => {
    const before = await testStore.history(administrator);
    await expect(asOperator(administrator.accountId)).rejects.toMatchObject(refusal(administrator));
    expect(await testStore.history(administrator)).toEqual(before);
  });

  test("is the last one among those that are not blocked", async () => {
    const second = await join("ben@example.org", true);
    await asOperator(second.accountId);
    await expect(asOperator(administrator.accountId)).rejects.toMatchObject(refusal(administrator));
    await accounts().unblockAccount({ accountId: second.accountId });
    expect(await asOperator(administrator.accountId)).toMatchObject({ environmentsStopped: 0 });
  });

  test("is protected in each organization of the account", async () => {
    const island = await testStore.createOrganization("island");
    const { store, keys } = testStore;
    await insertTestMember(store, keys, { ...administrator, email: "island@example.org" });
    await expect(asOperator(island.accountId)).rejects.toMatchObject(refusal(island));
  });

  test("remains when two administrators block each other at once", async () => {
    const second = await join("ben@example.org", true);
    const tokenId = await testStore.issueTokenId(second.userId);
    const asSecond = userOf({ ...administrator, accountId: second.accountId, tokenId }, second.userId);
    const outcomes = await Promise.allSettled([
      accounts().blockAccount({ accountId: second.accountId, reason: "first" }),
      accounts(asSecond).blockAccount({ accountId: administrator.accountId, reason: "second" }),
    ]);
    expect(outcomes).toMatchObject([
      { status: "fulfilled" },
      { status: "rejected", reason: { reason: ErrorReason.ACCOUNT_BLOCKED } },
    ]);
  });
});

describe("a caller that was cut off since the gate let it in", () => {
  test("writes nothing more", async () => {
    await block("left");
    const before = await testStore.history(administrator);
    await expect(servicesOf(testStore, caller).environments.createEnvironment({})).rejects.toMatchObject({
      reason: ErrorReason.ACCOUNT_BLOCKED,
    });
    expect(await testStore.history(administrator)).toEqual(before);
  });

  test("nor does the holder of a token that was disabled", async () => {
    const tokenId = await serviceAccountToken(member.accountId, "first");
    await block("left");
    const holder: Caller = { ...caller, accountId: "", role: "service_account", tokenId };
    await expect(servicesOf(testStore, holder).environments.createEnvironment({})).rejects.toMatchObject({
      reason: ErrorReason.UNAUTHENTICATED,
    });
  });
});
