import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ProjectPhase } from "#gen/service/v1/project_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { removeDeletedProjects } from "../../../src/jobs/project-removal.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
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

async function listed(): Promise<string[]> {
  const { projects } = await own.projects.listProjects({
    sort: { field: "id" },
    pagination: { pageSize: 100 },
  });
  return projects.map(({ id }) => id);
}

describe("the removal of projects", () => {
  test("leaves projects that are in use alone", async () => {
    const projectId = await own.project("ship");
    expect(await removeDeletedProjects(testStore.store)).toBe(0);
    expect(await listed()).toEqual([projectId]);
  });

  test("waits until no environment refers to the project, and lists it until then", async () => {
    const projectId = await own.project("ship");
    const environmentId = await own.use(projectId);
    await own.projects.deleteProject({ projectId });
    expect(await removeDeletedProjects(testStore.store)).toBe(0);
    expect((await own.projects.getProject({ projectId })).project?.desiredPhase).toBe(ProjectPhase.DELETED);
    await own.environments.deleteEnvironment({ environmentId });
    expect(await removeDeletedProjects(testStore.store)).toBe(1);
    expect(await listed()).toEqual([]);
    expect(await removeDeletedProjects(testStore.store)).toBe(0);
  });

  test("is not held up by projects that still wait", async () => {
    const [waiting, free] = [await own.project("waiting"), await own.project("free")];
    await own.use(waiting);
    for (const projectId of [waiting, free]) await own.projects.deleteProject({ projectId });
    expect(await removeDeletedProjects(testStore.store)).toBe(1);
    expect(await listed()).toEqual([waiting]);
  });

  test("takes 100 a run", async () => {
    const ids = await Promise.all(Array.from({ length: 130 }, (_, index) => own.project(`ship-${index}`)));
    await Promise.all(ids.map((projectId) => own.projects.deleteProject({ projectId })));
    expect(await removeDeletedProjects(testStore.store)).toBe(100);
    expect(await removeDeletedProjects(testStore.store)).toBe(30);
    expect(await listed()).toEqual([]);
  });

  test("takes with it what filters look in, and records who did it", async () => {
    const projectId = await own.project("ship");
    await own.environments.deleteEnvironment({ environmentId: await own.use(projectId) });
    await own.projects.deleteProject({ projectId });
    await removeDeletedProjects(testStore.store);
    for (const table of ["project_remote", "project_use"] as const) {
      expect(await builderOf(testStore.store.reader).selectFrom(table).selectAll().execute()).toEqual([]);
    }
    const { audit, events } = await testStore.history(caller);
    expect(audit.at(-1)).toMatchObject({
      operation: "job/project-removal",
      actor_id: "system",
      subject_id: projectId,
    });
    expect(events.at(-1)).toMatchObject({ kind: "deleted", resource_id: projectId });
  });
});
