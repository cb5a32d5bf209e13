import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { RunnerPhase } from "#gen/service/v1/runner_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { markInactiveRunners } from "../../../src/jobs/runner-inactivity.ts";
import { removeExpiredTokens } from "../../../src/jobs/token-expiry.ts";
import { DAY_MS, openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";
import { registeredRunner } from "./work-service.ts";

const SILENCE_MS = 90_000;

let made: TestStore;
let caller: Caller;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
});
afterEach(() => made.close());

const statusOf = async (runnerId: string) =>
  (await servicesOf(made, caller).runners.getRunner({ runnerId })).runner?.status;
const look = () => markInactiveRunners(made.store, made.clock.now);
const recordOf = async (runnerId: string) =>
  (await made.history(caller)).audit
    .filter(({ subject_id }) => subject_id === runnerId)
    .map(({ operation }) => operation);

describe("a runner", () => {
  test("is inactive once nothing was heard of it for 90 seconds, not before, and recorded so once", async () => {
    const { runnerId } = await registeredRunner(made, caller);
    made.clock.now += SILENCE_MS - 1;
    expect(await look()).toBe(0);
    expect((await statusOf(runnerId))?.phase).toBe(RunnerPhase.ACTIVE);
    made.clock.now += 1;
    expect(await look()).toBe(1);
    expect(await statusOf(runnerId)).toMatchObject({
      phase: RunnerPhase.INACTIVE,
      version: "1",
      message: "the runner has not reported for 90 seconds",
    });
    made.clock.now += SILENCE_MS;
    expect(await look()).toBe(0);
    expect((await recordOf(runnerId)).at(-1)).toBe("job/runner-silence");
  });

  test("that never registered is not silent", async () => {
    const { runner } = await servicesOf(made, caller).runners.createRunner({ name: "north" });
    made.clock.now += 2 * SILENCE_MS;
    expect(await look()).toBe(0);
    expect((await statusOf(runner?.runnerId ?? ""))?.phase).toBe(RunnerPhase.CREATED);
  });

  test.each(["heartbeat", "leaseWork"] as const)(
    "stays active by %s, without a row in the record",
    async (sign) => {
      const runner = await registeredRunner(made, caller);
      const before = await recordOf(runner.runnerId);
      const call = { heartbeat: () => runner.heartbeat({}), leaseWork: () => runner.lease() };
      for (let time = 0; time < 3 * SILENCE_MS; time += 60_000) {
        made.clock.now += 60_000;
        await call[sign]();
        expect(await look()).toBe(0);
      }
      expect(await recordOf(runner.runnerId)).toEqual(before);
    },
  );

  test.each(["heartbeat", "leaseWork"] as const)("that was silent is active again after %s", async (sign) => {
    const runner = await registeredRunner(made, caller);
    const call = { heartbeat: () => runner.heartbeat({}), leaseWork: () => runner.lease() };
    made.clock.now += SILENCE_MS;
    await look();
    await call[sign]();
    expect(await statusOf(runner.runnerId)).toMatchObject({ phase: RunnerPhase.ACTIVE, message: "" });
    made.clock.now += SILENCE_MS;
    expect(await look()).toBe(1);
  });

  test("of another organization is judged by itself", async () => {
    const other = await made.createOrganization("island");
    const mine = await registeredRunner(made, caller);
    const theirs = await registeredRunner(made, other);
    made.clock.now += SILENCE_MS - 1;
    await theirs.heartbeat({});
    made.clock.now += 1;
    expect(await look()).toBe(1);
    expect((await statusOf(mine.runnerId))?.phase).toBe(RunnerPhase.INACTIVE);
    const { runners } = await servicesOf(made, other).runners.listRunners({});
    expect(runners.find(({ runnerId }) => runnerId === theirs.runnerId)?.status?.phase).toBe(
      RunnerPhase.ACTIVE,
    );
  });

  test("has a token that holds for 365 days", async () => {
    const runner = await registeredRunner(made, caller);
    made.clock.now += 365 * DAY_MS - 1;
    await runner.heartbeat({});
    made.clock.now += 1;
    await expect(runner.heartbeat({ version: "2" })).rejects.toMatchObject({ name: "DomainError" });
    expect(await removeExpiredTokens(made.store, made.clock.now)).toBe(1);
  });
});
