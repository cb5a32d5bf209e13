import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { AccountService as Contract } from "#gen/service/v1/account_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { continueStops } from "../../../src/jobs/stops.ts";
import { AccountService } from "../../../src/services/access/account-service.ts";
import { ROWS_PER_TRANSACTION } from "../../../src/services/call/row-budget.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { afterWrites } from "../../harness/after-writes.ts";
import { insertTestMember, type TestMember } from "../../harness/member.ts";
import { openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

const { RUNNING, STOPPED } = EnvironmentPhase;
const MANY = 2 * ROWS_PER_TRANSACTION + 10;

let made: TestStore;
let administrator: Caller;
let member: TestMember;
let caller: Caller;
beforeEach(async () => {
  made = openTestStore();
  administrator = await made.createOrganization("harbour");
  const { organizationId } = administrator;
  member = await insertTestMember(made.store, made.keys, { organizationId, email: "ann@example.org" });
  const tokenId = await made.issueTokenId(member.userId);
  caller = {
    ...userOf({ ...administrator, accountId: member.accountId, tokenId }, member.userId),
    role: "member",
  };
});
afterEach(() => made.close());

const accounts = () => operationsOf(Contract, new AccountService(made.deps), administrator);
const block = () => accounts().blockAccount({ accountId: member.accountId, reason: "left" });
const environments = (as = caller) => servicesOf(made, as).environments;
const stopsLeft = () => builderOf(made.store.reader).selectFrom("pending_stop").selectAll().execute();

/** A running environment, as a person started it. */
async function started(as = caller): Promise<string> {
  const { environment } = await environments(as).createEnvironment({ name: "e" });
  const environmentId = environment?.id ?? "";
  made.clock.now += 1;
  await environments(as).startEnvironment({ environmentId });
  return environmentId;
}

async function many(): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < MANY) ids.push(await started());
  return ids;
}

/** Ids of the environments that are wanted to run, in their order. */
async function wantedRunning(): Promise<string[]> {
  const rows = await builderOf(made.store.reader)
    .selectFrom("environment")
    .select("id")
    .where("desired_phase", "=", RUNNING)
    .orderBy("id")
    .execute();
  return rows.map(({ id }) => id);
}

const blockedAt = async () => {
  const rows = builderOf(made.store.reader).selectFrom("account").select("blocked_at");
  return (await rows.where("id", "=", member.accountId).executeTakeFirstOrThrow()).blocked_at;
};

describe("blocking an account with many environments", () => {
  test("cuts it off at once and counts all of them, and stops them in turns of a bounded number of rows", async () => {
    const ids = await many();
    const other = await started(administrator);
    const { audit: before } = await made.history(administrator);
    expect((await block()).environmentsStopped).toBe(MANY);
    const { audit } = await made.history(administrator);
    expect(audit.length - before.length).toBeLessThanOrEqual(ROWS_PER_TRANSACTION + 2);
    expect(await blockedAt()).toBe(made.clock.now);
    await expect(environments().createEnvironment({ name: "e" })).rejects.toThrow("blocked");
    expect(await wantedRunning()).toEqual([...ids.slice(ROWS_PER_TRANSACTION), other]);
    // Counted from the receipt, although most of them still run.
    expect((await block()).environmentsStopped).toBe(MANY);
    expect(await continueStops(made.store)).toBe(2);
    expect(await wantedRunning()).toEqual([other]);
    expect(await stopsLeft()).toEqual([]);
  });

  test("goes on where an interrupted run left it", async () => {
    const ids = await many();
    await block();
    const draining = new AbortController();
    const leave = afterWrites(made.store, () => draining.abort());
    expect(await continueStops(made.store, draining.signal)).toBe(1);
    leave();
    expect(await wantedRunning()).toEqual(ids.slice(2 * ROWS_PER_TRANSACTION));
    await continueStops(made.store);
    expect(await wantedRunning()).toEqual([]);
  });

  test("leaves alone what is made or started since, and stops the rest although it has access again", async () => {
    const ids = await many();
    await block();
    made.clock.now += 1;
    const [first = ""] = ids;
    await environments(administrator).startEnvironment({ environmentId: first });
    await accounts().unblockAccount({ accountId: member.accountId });
    const later = await started();
    const waiting = await environments().createEnvironment({ name: "e", spec: { desiredPhase: RUNNING } });
    await continueStops(made.store);
    expect(await wantedRunning()).toEqual([first, later, waiting.environment?.id]);
    expect(await stopsLeft()).toEqual([]);
  });

  test("has nothing to go on with when they are few, or rest", async () => {
    for (let index = 0; index < ROWS_PER_TRANSACTION; index += 1) await started();
    for (let index = 0; index < ROWS_PER_TRANSACTION; index += 1) {
      await environments().createEnvironment({ name: "e", spec: { desiredPhase: STOPPED } });
    }
    expect((await block()).environmentsStopped).toBe(ROWS_PER_TRANSACTION);
    expect(await wantedRunning()).toEqual([]);
    expect(await stopsLeft()).toEqual([]);
  });
});
