import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Project, ProjectSchema } from "#gen/service/v1/project_pb.js";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { insertProject, updateProject } from "../../src/store/project/project.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { searchTables } from "../../src/store/sqlite/search/search-tables.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";
import { servicesOf } from "./services.ts";

let made: TestStore;
beforeEach(() => {
  // So that what waits at the same time shares a commit.
  made = openTestStore({ groupMs: Number.POSITIVE_INFINITY });
});
afterEach(() => made.close());

const named = (name: string, id = made.newId()): Project =>
  create(ProjectSchema, { id, desiredPhase: 1, metadata: { name } });

const insert = (caller: Caller, project: Project) =>
  made.store.write(SYSTEM, "test", (tx) => insertProject(tx, caller, project));

const failAfter = (caller: Caller, project: Project, before?: Project) =>
  made.store.write(SYSTEM, "test", async (tx) => {
    await (before ? updateProject(tx, caller, before, project) : insertProject(tx, caller, project));
    throw new Error("after all of it");
  });

/** The rows of the index that projects have, from the first one of their organization on, and its counter. */
async function rowsOf({ organizationId }: Caller) {
  const { reader } = made.store;
  const projects = await builderOf(reader)
    .selectFrom("project")
    .select("search_row")
    .where("organization_id", "=", organizationId)
    .orderBy("id")
    .execute();
  const range = await searchTables(reader)
    .selectFrom("project_search_range")
    .select(["number", "last_row"])
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
  const first = (range?.number ?? 0) * 2 ** 30;
  return { rows: projects.map((row) => (row.search_row ?? 0) - first), last: (range?.last_row ?? 0) - first };
}

const found = async (caller: Caller, search: string) => {
  const { projects } = await servicesOf(made, caller).projects.listProjects({ filter: { search } });
  return projects.map(({ metadata }) => metadata?.name);
};

test("the first project of an organization fails, and another is its first in the same commit", async () => {
  const [harbour, lighthouse] = [
    await made.createOrganization("harbour"),
    await made.createOrganization("lighthouse"),
  ];
  const results = await Promise.allSettled([
    failAfter(harbour, named("lost")),
    insert(lighthouse, named("lamp")),
    insert(harbour, named("quay")),
    failAfter(lighthouse, named("lost")),
    insert(harbour, named("mole")),
    insert(lighthouse, named("lens")),
  ]);
  expect(results.map(({ status }) => status === "fulfilled")).toEqual([false, true, true, false, true, true]);
  expect(await rowsOf(harbour)).toEqual({ rows: [1, 2], last: 2 });
  expect(await rowsOf(lighthouse)).toEqual({ rows: [1, 2], last: 2 });
  expect(await found(harbour, "quay")).toEqual(["quay"]);
  expect(await found(lighthouse, "lens")).toEqual(["lens"]);
  expect(await found(harbour, "lost")).toEqual([]);
});

test("a new name that fails leaves its row to the caller that comes next in the same commit", async () => {
  const harbour = await made.createOrganization("harbour");
  const quay = named("quay");
  const [pier, mole] = [named("pier"), named("mole")];
  const results = await Promise.allSettled([
    insert(harbour, quay),
    failAfter(harbour, named("lost", quay.id), quay),
    insert(harbour, pier),
    made.store.write(SYSTEM, "test", (tx) => updateProject(tx, harbour, pier, named("jetty", pier.id))),
    insert(harbour, mole),
  ]);
  expect(results.filter(({ status }) => status === "rejected")).toHaveLength(1);
  // Of quay, jetty and mole; the row of the text "pier" is nobody's.
  expect(await rowsOf(harbour)).toEqual({ rows: [1, 3, 4], last: 4 });
  for (const name of ["quay", "jetty", "mole"]) expect(await found(harbour, name)).toEqual([name]);
  for (const name of ["lost", "pier"]) expect(await found(harbour, name)).toEqual([]);
});
