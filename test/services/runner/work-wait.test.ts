import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";
import { type RegisteredRunner, registeredRunner } from "./work-service.ts";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let draining: AbortController;
beforeEach(async () => {
  draining = new AbortController();
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller, { draining });
  // Time does not pass, so that nothing wakes a waiting call but what happens; the store goes on.
  jest.useFakeTimers({ doNotFake: ["setImmediate", "performance", "nextTick", "queueMicrotask", "Date"] });
});
afterEach(async () => {
  jest.useRealTimers();
  await made.close();
});

const queue = () => servicesOf(made, caller).environments.createEnvironment({});

/** A runner that waits for work, and whether it still does. */
function waiting(seconds: bigint | undefined, by = runner) {
  const state = { over: false };
  const wait = seconds === undefined ? {} : { wait: { seconds } };
  const answer = by.leaseWork({ maxLeases: 1, ...wait }).finally(() => {
    state.over = true;
  });
  return { answer, isOver: () => state.over };
}

/** Lets what is ready happen, without the time moving. */
const settle = async () => {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((next) => setImmediate(next));
};

/** Moves the time on, the clock and the timers together. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    made.clock.now += Math.min(left, 1_000);
    await jest.advanceTimersByTimeAsync(Math.min(left, 1_000));
    await settle();
  }
}

describe("a runner that waits for work", () => {
  test("gets it with the commit that queues it", async () => {
    const { answer, isOver } = waiting(60n);
    await settle();
    expect(isOver()).toBe(false);
    await queue();
    expect((await answer).works).toHaveLength(1);
  });

  test("waits on when the commit queued nothing for it, or another was faster", async () => {
    const other = await registeredRunner(made, caller, { name: "south", draining });
    const both = [waiting(60n), waiting(60n, other)];
    await settle();
    await servicesOf(made, caller).project("ship");
    await settle();
    expect(both.map(({ isOver }) => isOver())).toEqual([false, false]);
    await queue();
    await Promise.race(both.map(({ answer }) => answer));
    await settle();
    expect(both.filter(({ isOver }) => isOver())).toHaveLength(1);
    await queue();
    const answers = await Promise.all(both.map(({ answer }) => answer));
    expect(answers.map(({ works }) => works.length)).toEqual([1, 1]);
    const ids = answers.flatMap(({ works }) => works.map(({ leaseId }) => leaseId));
    expect(new Set(ids).size).toBe(2);
  });

  test("gets what was given back, with the commit that does that", async () => {
    await queue();
    const { leaseId, fence } = await runner.leaseOne();
    const { answer, isOver } = waiting(60n);
    await settle();
    expect(isOver()).toBe(false);
    await runner.finishWork({ leaseId, fence, outcome: Outcome.RELEASED });
    expect((await answer).works).toMatchObject([{ leaseId, attempt: 2 }]);
  });

  test("does not look for any at a commit that brings none", async () => {
    waiting(60n);
    await settle();
    const looks = jest.spyOn(builderOf(made.store.reader), "executeQuery");
    await made.store.note("runner", runner.runnerId, { seen_at: made.clock.now });
    await settle();
    expect(looks).not.toHaveBeenCalled();
  });

  test("goes home with nothing when its time is over, not before", async () => {
    const { answer, isOver } = waiting(5n);
    await settle();
    await pass(4_999);
    expect(isOver()).toBe(false);
    await pass(1);
    expect((await answer).works).toEqual([]);
  });

  test("of no seconds does not wait, and of none said 20 seconds", async () => {
    expect((await waiting(0n).answer).works).toEqual([]);
    const { answer, isOver } = waiting(undefined);
    await settle();
    await pass(19_999);
    expect(isOver()).toBe(false);
    await pass(1);
    expect((await answer).works).toEqual([]);
  });

  test("writes nothing while there is nothing for it", async () => {
    const commits = jest.fn();
    await runner.lease();
    made.store.onCommit(commits);
    const { answer } = waiting(3n);
    await settle();
    await pass(3_000);
    await answer;
    expect(commits).not.toHaveBeenCalled();
  });

  test("goes home with nothing when the server drains, also when there is work", async () => {
    const { answer, isOver } = waiting(60n);
    await settle();
    expect(isOver()).toBe(false);
    draining.abort();
    expect((await answer).works).toEqual([]);
    await queue();
    expect(await runner.lease()).toEqual([]);
  });
});
