import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { pruneEvents } from "../../../src/jobs/event-pruning.ts";
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

describe("pruning events", () => {
  test("removes those that are too old, and keeps the number of the last and the whole trail", async () => {
    const before = await testStore.history(caller);
    testStore.clock.now += 31 * DAY_MS;
    await servicesOf(testStore, caller).project("young");
    const whole = await testStore.history(caller);
    const removed = await pruneEvents(testStore.store, testStore.clock.now - 30 * DAY_MS);
    const after = await testStore.history(caller);
    expect(removed).toBe(before.events.length);
    expect(after.events).toEqual(whole.events.slice(removed));
    expect(after.audit).toEqual(whole.audit);
    expect(await prunedTo()).toBe(before.events.at(-1)?.sequence);
    expect(await pruneEvents(testStore.store, testStore.clock.now - 30 * DAY_MS)).toBe(0);
  });

  test("stops at the first event that is young enough, though the clock was set back behind it", async () => {
    const before = await testStore.history(caller);
    testStore.clock.now -= 10 * DAY_MS;
    await servicesOf(testStore, caller).project("earlier by the clock");
    const whole = await testStore.history(caller);
    expect(await pruneEvents(testStore.store, testStore.clock.now + DAY_MS)).toBe(0);
    expect((await testStore.history(caller)).events).toEqual(whole.events);
    expect(whole.events.length).toBeGreaterThan(before.events.length);
  });

  test("touches no other organization, and leaves the guard closed", async () => {
    const other = await testStore.createOrganization("lighthouse");
    testStore.clock.now += 31 * DAY_MS;
    await servicesOf(testStore, other).project("young");
    const events = (await testStore.history(other)).events.length;
    const removed = await pruneEvents(testStore.store, testStore.clock.now - 30 * DAY_MS);
    expect(removed).toBeGreaterThan(0);
    expect((await testStore.history(other)).events.length).toBeLessThan(events);
    expect((await testStore.history(other)).events).not.toEqual([]);
    expect(await builderOf(testStore.store.reader).selectFrom("pruning").selectAll().execute()).toEqual([]);
  });
});
