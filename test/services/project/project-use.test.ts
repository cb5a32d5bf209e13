import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { insertProjectUse } from "../../../src/store/project/project-use.ts";
import { openTestStore, type TestStore, userOf } from "../../harness/test-store.ts";
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

async function usedBy(projectId: string) {
  const { project } = await own.projects.getProject({ projectId });
  return { ids: project?.usedBy?.subjects.map(({ id }) => id), total: project?.usedBy?.totalSubjects };
}

describe("who used a project", () => {
  test("is nobody at first", async () => {
    expect(await usedBy(await own.project("ship"))).toEqual({ ids: [], total: 0 });
  });

  test("is its last 10 of 12 subjects, latest first, each once, and all 12 in the number", async () => {
    const projectId = await own.project("ship");
    const ids = Array.from({ length: 12 }, () => testStore.newId());
    const users = ids.map((id) => servicesOf(testStore, userOf(caller, id)));
    for (const user of users) await user.use(projectId);
    expect(await usedBy(projectId)).toEqual({ ids: ids.toReversed().slice(0, 10), total: 12 });
    await users[0]?.use(projectId);
    await users[5]?.use(projectId);
    const [first, , , , , sixth] = ids;
    const rest = ids.toReversed().filter((id) => id !== first && id !== sixth);
    expect(await usedBy(projectId)).toEqual({ ids: [sixth, first, ...rest].slice(0, 10), total: 12 });
  });

  test("stays known when the environment is gone", async () => {
    const projectId = await own.project("ship");
    await own.environments.deleteEnvironment({ environmentId: await own.use(projectId) });
    expect(await usedBy(projectId)).toEqual({ ids: [caller.subject.id], total: 1 });
  });

  test("is kept apart for each project", async () => {
    const projectId = await own.project("ship");
    await own.use(await own.project("boat"));
    expect(await usedBy(projectId)).toEqual({ ids: [], total: 0 });
  });

  test("keeps the newest environment when ids come out of order", async () => {
    const projectId = await own.project("ship");
    const [early, late, latest] = [testStore.newId(), testStore.newId(), testStore.newId()];
    const other = userOf(caller, testStore.newId()).subject;
    await testStore.store.write({ id: "", principal: 0 }, "test", async (tx) => {
      await insertProjectUse(tx, caller, projectId, caller.subject, latest);
      await insertProjectUse(tx, caller, projectId, other, late);
      await insertProjectUse(tx, caller, projectId, caller.subject, early);
    });
    expect(await usedBy(projectId)).toEqual({ ids: [caller.subject.id, other.id], total: 2 });
  });

  test("does not change updatedAt", async () => {
    const projectId = await own.project("ship");
    const { project: before } = await own.projects.getProject({ projectId });
    testStore.clock.now += 1_000;
    await own.use(projectId);
    const { project: after } = await own.projects.getProject({ projectId });
    expect(after?.metadata?.updatedAt).toEqual(before?.metadata?.updatedAt);
  });
});
