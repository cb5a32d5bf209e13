import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner, startedRun } from "./work-service.ts";

const ONE = "01900000-0000-7000-8000-000000000001";
const TWO = "01900000-0000-7000-8000-000000000002";
const LIVES_MS = 45_000;

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
});
afterEach(() => made.close());

const begin = (instanceId: string, by = runner) => by.beginInstance({ instanceId });
const endExpired = () => endExpiredLeases(made.store, made.clock.now);
const lease = async (instanceId: string, maxLeases = 1, by = runner) =>
  (await by.leaseWork({ maxLeases, instanceId, wait: { seconds: 0n } })).works;
const subjects = (works: Awaited<ReturnType<typeof lease>>) =>
  works.map(({ work, attempt }) => [
    (work.value as { environment?: { id: string } }).environment?.id,
    attempt,
  ]);
const inUse = expect.objectContaining({ reason: ErrorReason.IN_USE });
const leaseLost = expect.objectContaining({ reason: ErrorReason.LEASE_LOST });

describe("an instance of a runner that begins", () => {
  test("loses what it held, at once, and is given it again", async () => {
    await startedRun(made, caller, { actions: 3 });
    expect(await begin(ONE)).toMatchObject({ lostLeases: 0 });
    const held = await lease(ONE, 3);
    expect(await endExpired()).toBe(0);
    expect(await begin(ONE)).toMatchObject({ lostLeases: 3 });
    for (const { leaseId, fence } of held)
      await expect(runner.renewLease({ leaseId, fence })).rejects.toEqual(leaseLost);
    expect(await endExpired()).toBe(3);
    const again = await lease(ONE, 3);
    expect(again).toHaveLength(3);
    expect(subjects(again).map(([, attempt]) => attempt)).toEqual([2, 2, 2]);
    expect(await begin(ONE)).toMatchObject({ lostLeases: 3 });
  });

  test("leaves alone what programs without one hold, and what other runners hold", async () => {
    await startedRun(made, caller, { actions: 3 });
    const other = await registeredRunner(made, caller, { name: "south" });
    const [plain] = await lease("");
    await begin(ONE, other);
    const [foreign] = await lease(ONE, 1, other);
    await begin(ONE);
    const [own] = await lease(ONE);
    expect(await begin(ONE)).toMatchObject({ lostLeases: 1 });
    const renew = (by: RegisteredRunner, of: typeof own) =>
      by.renewLease({ leaseId: of?.leaseId ?? "", fence: of?.fence ?? 0n });
    await expect(renew(runner, own)).rejects.toEqual(leaseLost);
    await renew(runner, plain);
    await renew(other, foreign);
  });

  test("is refused while another one lives, up to 45 seconds after its last sign of life", async () => {
    await begin(ONE);
    made.clock.now += LIVES_MS - 1;
    await expect(begin(TWO)).rejects.toEqual(inUse);
    await runner.heartbeat({ instanceId: ONE });
    made.clock.now += LIVES_MS - 1;
    await expect(begin(TWO)).rejects.toEqual(inUse);
    // Of the runner something was heard, of its instance nothing.
    await runner.heartbeat({});
    await runner.heartbeat({ instanceId: TWO });
    made.clock.now += 1;
    await begin(TWO);
    await expect(begin(ONE)).rejects.toEqual(inUse);
  });

  test("takes no leases from the one before it", async () => {
    await startedRun(made, caller, { actions: 2 });
    await begin(ONE);
    const [held] = await lease(ONE);
    made.clock.now += LIVES_MS;
    await runner
      .renewLease({ leaseId: held?.leaseId ?? "", fence: held?.fence ?? 0n })
      .catch(() => undefined);
    expect(await begin(TWO)).toMatchObject({ lostLeases: 0 });
  });
});

describe("work", () => {
  test("is leased to the instance that began last, and to programs without one", async () => {
    await startedRun(made, caller, { actions: 3 });
    await expect(lease(ONE)).rejects.toEqual(inUse);
    await begin(ONE);
    made.clock.now += LIVES_MS;
    await begin(TWO);
    await expect(lease(ONE)).rejects.toEqual(inUse);
    const request = { maxLeases: 1, wait: { seconds: 0n } };
    expect((await runner.reportWorks({ lease: { ...request, instanceId: ONE } })).works).toEqual([]);
    expect((await runner.reportWorks({ lease: { ...request, instanceId: TWO } })).works).toHaveLength(1);
    expect(await lease(TWO)).toHaveLength(1);
    expect(await lease("")).toHaveLength(1);
  });
});
