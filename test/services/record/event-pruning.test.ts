import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { pruneEvents } from "../../../src/jobs/retention/event-pruning.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { DAY_MS, openTestStore, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

let testStore: TestStore;
let caller: Caller;
beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
});
afterEach(() => testStore.close());

const prunedTo = async () =>
  (
    await builderOf(testStore.store.reader)
      .selectFrom("organization")
      .select("pruned_sequence")
      .where("id", "=", caller.organizationId)
      .executeTakeFirstOrThrow()
  ).pruned_sequence;

const prune = (keep = { days: 30, count: 0 }, now = testStore.clock.now) =>
  pruneEvents(testStore.store, caller, keep, now);

describe("pruning events", () => {
  test("removes those that are too old, and keeps the number of the last and the whole trail", async () => {
    const before = await testStore.history(caller);
    testStore.clock.now += 31 * DAY_MS;
    await servicesOf(testStore, caller).project("young");
    const whole = await testStore.history(caller);
    const removed = await prune();
    const after = await testStore.history(caller);
    expect(removed).toBe(before.events.length);
    expect(after.events).toEqual(whole.events.slice(removed));
    expect(after.audit).toEqual(whole.audit);
    expect(await prunedTo()).toBe(before.events.at(-1)?.sequence);
    expect(await prune()).toBe(0);
  });

  test("stops at the first event that is young enough, though the clock was set back behind it", async () => {
    const before = await testStore.history(caller);
    testStore.clock.now -= 10 * DAY_MS;
    await servicesOf(testStore, caller).project("earlier by the clock");
    const whole = await testStore.history(caller);
    expect(await prune({ days: 30, count: 0 }, testStore.clock.now + 31 * DAY_MS)).toBe(0);
    expect((await testStore.history(caller)).events).toEqual(whole.events);
    expect(whole.events.length).toBeGreaterThan(before.events.length);
  });

  test("touches no other organization, and leaves the guard closed", async () => {
    const other = await testStore.createOrganization("lighthouse");
    testStore.clock.now += 31 * DAY_MS;
    const whole = (await testStore.history(other)).events;
    expect(await prune()).toBeGreaterThan(0);
    expect((await testStore.history(other)).events).toEqual(whole);
    expect(await builderOf(testStore.store.reader).selectFrom("pruning").selectAll().execute()).toEqual([]);
  });

  test("keeps as many as are to be kept, and those of the last hour", async () => {
    const services = servicesOf(testStore, caller);
    for (const name of ["one", "two", "three"]) await services.project(name);
    const whole = (await testStore.history(caller)).events;
    testStore.clock.now += 3_600_000;
    expect(await prune({ days: 0, count: 2 })).toBe(0);
    testStore.clock.now += 1;
    expect(await prune({ days: 0, count: whole.length })).toBe(0);
    expect(await prune({ days: 0, count: 2 })).toBe(whole.length - 2);
    expect((await testStore.history(caller)).events).toEqual(whole.slice(-2));
    expect(await prune({ days: 0, count: 0 })).toBe(0);
  });
});
