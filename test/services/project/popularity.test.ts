import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { refreshPopularity } from "../../../src/jobs/popularity.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { DAY_MS, MINUTE_MS, openTestStore, START_MS, type TestStore } from "../../harness/test-store.ts";
import { type Services, servicesOf } from "../services.ts";

let testStore: TestStore;
let caller: Caller;
let own: Services;

beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  own = servicesOf(testStore, caller);
});
afterEach(() => testStore.close());

/** log2 of the sum of 2^(t / 3 days) since 2020, added up as whole numbers instead of logarithms. */
function bruteForce(times: readonly number[]): number {
  const FRACTION_BITS = 52;
  let sum = 0n;
  for (const time of times) {
    const exponent = (time - Date.UTC(2020, 0, 1)) / (3 * DAY_MS);
    const whole = Math.floor(exponent);
    sum += BigInt(Math.round(2 ** (exponent - whole + FRACTION_BITS))) << BigInt(whole);
  }
  const dropped = Math.max(0, sum.toString(2).length - 60);
  return Math.log2(Number(sum >> BigInt(dropped))) + dropped - FRACTION_BITS;
}

async function popularity(projectId: string): Promise<number> {
  const row = await builderOf(testStore.store.reader)
    .selectFrom("project")
    .select("popularity")
    .where("id", "=", projectId)
    .executeTakeFirstOrThrow();
  return row.popularity;
}

async function listed(): Promise<string[]> {
  return (await own.projects.listProjects({})).projects.map(({ id }) => id);
}

/** The same numbers in every run. */
function sequence(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

describe("the popularity of projects", () => {
  test("agrees with a plain sum, however the environments are spread over runs", async () => {
    const random = sequence(42);
    const projects = new Map<string, number[]>();
    for (const name of ["a", "b", "c", "d"]) projects.set(await own.project(name), []);
    for (let round = 0; round < 6; round++) {
      for (let index = 0; index < 25; index++) {
        testStore.clock.now += Math.floor(random() * 2 * DAY_MS);
        const [projectId, times] = [...projects][Math.floor(random() * 3)] ?? ["", []];
        await own.use(projectId);
        times.push(testStore.clock.now);
      }
      expect(await refreshPopularity(testStore.store)).toBe(25);
      for (const [projectId, times] of projects) {
        const expected = times.length === 0 ? 0 : bruteForce(times);
        expect(Math.abs((await popularity(projectId)) - expected)).toBeLessThan(1e-9);
      }
    }
  });

  test("counts more environments than one batch holds", async () => {
    const projectId = await own.project("ship");
    const uses = Array.from({ length: 2_100 }, () => own.use(projectId));
    await Promise.all(uses);
    expect(await refreshPopularity(testStore.store)).toBe(2_100);
    const expected = bruteForce(uses.map(() => START_MS));
    expect(Math.abs((await popularity(projectId)) - expected)).toBeLessThan(1e-9);
    expect(await refreshPopularity(testStore.store)).toBe(0);
  });

  test("is not changed by time alone", async () => {
    const [once, often, never] = [
      await own.project("once"),
      await own.project("often"),
      await own.project("never"),
    ];
    for (let index = 0; index < 3; index++) await own.use(often);
    testStore.clock.now += 4 * DAY_MS;
    await own.use(once);
    await refreshPopularity(testStore.store);
    const before = [await popularity(once), await popularity(often), await popularity(never)];
    const order = await listed();
    expect(order).toEqual([often, once, never]);
    for (let years = 0; years < 10; years++) {
      testStore.clock.now += 365 * DAY_MS;
      expect(await refreshPopularity(testStore.store)).toBe(0);
    }
    expect([await popularity(once), await popularity(often), await popularity(never)]).toEqual(before);
    expect(await listed()).toEqual(order);
  });

  test("lets three later days outweigh any two uses before", async () => {
    const [early, late] = [await own.project("early"), await own.project("late")];
    await own.use(early);
    testStore.clock.now += MINUTE_MS;
    await own.use(early);
    testStore.clock.now += 3 * DAY_MS;
    await own.use(late);
    await refreshPopularity(testStore.store);
    expect(await listed()).toEqual([late, early]);
  });

  test("counts an environment that was removed before the job came to it", async () => {
    const [kept, removed] = [await own.project("kept"), await own.project("removed")];
    await own.use(kept);
    await own.environments.deleteEnvironment({ environmentId: await own.use(removed) });
    const id = await own.use(removed);
    await refreshPopularity(testStore.store);
    await own.environments.deleteEnvironment({ environmentId: id });
    await refreshPopularity(testStore.store);
    expect(await popularity(kept)).toBe(bruteForce([START_MS]));
    expect(await popularity(removed)).toBe(bruteForce([START_MS, START_MS]));
  });

  test("counts an environment once though it is removed while a run is under way", async () => {
    const projectId = await own.project("ship");
    const id = await own.use(projectId);
    await Promise.all([
      refreshPopularity(testStore.store),
      own.environments.deleteEnvironment({ environmentId: id }),
    ]);
    expect(await popularity(projectId)).toBe(bruteForce([START_MS]));
  });

  test("counts every use though others are removed while a run is under way", async () => {
    for (let round = 0; round < 20; round++) {
      const projectId = await own.project(`ship ${round}`);
      const [kept, removed] = [3, 3];
      for (let index = 0; index < kept; index++) await own.use(projectId);
      const leaving = await Promise.all(Array.from({ length: removed }, () => own.use(projectId)));
      await Promise.all([
        ...leaving.map((environmentId) => own.environments.deleteEnvironment({ environmentId })),
        refreshPopularity(testStore.store),
      ]);
      await refreshPopularity(testStore.store);
      const expected = bruteForce(Array.from({ length: kept + removed }, () => START_MS));
      expect(Math.abs((await popularity(projectId)) - expected)).toBeLessThan(1e-9);
    }
  });

  test("loses no use that is over before a run that is under way has written", async () => {
    const projectId = await own.project("ship");
    await own.use(projectId);
    const { store } = testStore;
    const slow: typeof store = {
      ...store,
      async touchAll(notes) {
        await own.environments.deleteEnvironment({ environmentId: await own.use(projectId) });
        await store.touchAll(notes);
      },
    };
    await refreshPopularity(slow);
    expect(await popularity(projectId)).toBe(bruteForce([START_MS, START_MS]));
  });

  test("is bookkeeping: it leaves neither audit nor event", async () => {
    await own.use(await own.project("ship"));
    const before = await testStore.history(caller);
    await refreshPopularity(testStore.store);
    expect(await testStore.history(caller)).toEqual(before);
  });

  test("does not count environments without a project", async () => {
    await own.environments.createEnvironment({});
    expect(await refreshPopularity(testStore.store)).toBe(0);
  });
});
