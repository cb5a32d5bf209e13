import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { EnvironmentPhase, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { findRemoval, insertEnvironment } from "../../src/store/environment/environment.ts";
import { insertProjectUse } from "../../src/store/project/project-use.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM, type WriteTransaction } from "../../src/store/store.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";
import { type Services, servicesOf } from "./services.ts";

let testStore: TestStore;
let caller: Caller;
let own: Services;

beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  own = servicesOf(testStore, caller);
});
afterEach(() => testStore.close());

/** Every row of every table that a write could have touched. */
async function everything() {
  const tables = ["organization", "project", "project_use", "environment", "audit_log", "event"] as const;
  return Promise.all(
    tables.map((table) => builderOf(testStore.store.reader).selectFrom(table).selectAll().execute()),
  );
}

function environmentOf(projectId: string) {
  return create(EnvironmentSchema, {
    id: testStore.newId(),
    metadata: { organizationId: caller.organizationId, projectId, creator: caller.subject },
    spec: { desiredPhase: EnvironmentPhase.RUNNING },
  });
}

describe("a write that throws", () => {
  test("leaves no row, no use, no audit and no event", async () => {
    const projectId = await own.project("ship");
    const before = await everything();
    const failing = testStore.store.write(SYSTEM, "test", async (tx) => {
      const environment = environmentOf(projectId);
      await insertEnvironment(tx, caller, environment);
      await insertProjectUse(tx, caller, projectId, caller.subject, environment.id);
      throw new Error("after all of it");
    });
    await expect(failing).rejects.toThrow("after all of it");
    expect(await everything()).toEqual(before);
  });

  test("leaves what it removed, and the popularity, as they were", async () => {
    const projectId = await own.project("ship");
    const { environment } = await own.environments.createEnvironmentFromProject({ projectId });
    const before = await everything();
    const failing = testStore.store.write(SYSTEM, "test", async (tx) => {
      if (environment) await (await findRemoval(tx, caller, environment))();
      throw new Error("after the removal");
    });
    await expect(failing).rejects.toThrow("after the removal");
    expect(await everything()).toEqual(before);
  });

  test("takes nothing of those that share its commit", async () => {
    const projectId = await own.project("ship");
    const results = await Promise.allSettled([
      own.use(projectId),
      testStore.store.write(SYSTEM, "test", async (tx) => {
        await insertEnvironment(tx, caller, environmentOf(projectId));
        throw new Error("in the middle");
      }),
      own.use(projectId),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((await own.environments.listEnvironments({})).environments).toHaveLength(2);
    const { audit, events } = await testStore.history(caller);
    expect(audit.map(({ sequence }) => sequence)).toEqual(audit.map((_, index) => index + 1));
    expect(events).toHaveLength(audit.length);
  });
});

describe("a part of a write that throws", () => {
  const failingPart = (tx: WriteTransaction, projectId: string) =>
    tx.attempt(async () => {
      await insertEnvironment(tx, caller, environmentOf(projectId));
      throw new Error("in the part");
    });

  test("leaves nothing, and the write goes on with what it did before and does after", async () => {
    const projectId = await own.project("ship");
    const [before, after] = [environmentOf(projectId), environmentOf(projectId)];
    const recorded = (await testStore.history(caller)).audit.length;
    await testStore.store.write(SYSTEM, "test", async (tx) => {
      await insertEnvironment(tx, caller, before);
      await expect(failingPart(tx, projectId)).rejects.toThrow("in the part");
      await insertEnvironment(tx, caller, after);
    });
    const { audit, events } = await testStore.history(caller);
    expect(audit.slice(recorded).map((row) => row.subject_id)).toEqual([before.id, after.id]);
    expect(events).toHaveLength(audit.length);
    const { environments } = await own.environments.listEnvironments({});
    expect(environments.map(({ id }) => id)).toEqual([before.id, after.id]);
  });

  test("takes with it the parts that it holds, though they ended well", async () => {
    const projectId = await own.project("ship");
    const kept = environmentOf(projectId);
    await testStore.store.write(SYSTEM, "test", async (tx) => {
      const outer = tx.attempt(async () => {
        await tx.attempt(() => insertEnvironment(tx, caller, environmentOf(projectId)));
        await failingPart(tx, projectId);
      });
      await expect(outer).rejects.toThrow("in the part");
      await tx.attempt(() => insertEnvironment(tx, caller, kept));
    });
    const { environments } = await own.environments.listEnvironments({});
    expect(environments.map(({ id }) => id)).toEqual([kept.id]);
  });
});
