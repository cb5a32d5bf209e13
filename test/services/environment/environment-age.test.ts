import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type Environment, EnvironmentPhase, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import {
  PreviewOrganizationPoliciesResponse_Outcome as Outcome,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { archiveEnvironments } from "../../../src/jobs/environment-archiving.ts";
import { deleteArchivedEnvironments } from "../../../src/jobs/environment-deletion.ts";
import { stopExpiredEnvironments } from "../../../src/jobs/environment-lifetime.ts";
import { previewPolicies } from "../../../src/services/access/policy-preview.ts";
import { setEnterprise } from "../../../src/services/policy/enterprise.ts";
import { findEnvironment, updateEnvironment } from "../../../src/store/environment/environment.ts";
import { updateEnterprise } from "../../../src/store/policy/enterprise.ts";
import { findSetPolicies, updatePolicies } from "../../../src/store/policy/organization-policies.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { DAY_MS, openTestStore, type TestStore } from "../../harness/test-store.ts";
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

const days = (count: number) => ({ seconds: BigInt(count * 86_400) });
const pass = (ms: number) => {
  testStore.clock.now += ms;
};

/** Sets policies without the checks of the operation. */
async function setPolicies(policies: MessageInitShape<typeof OrganizationPoliciesSchema>, scope = caller) {
  await testStore.store.write(SYSTEM, "test", async (tx) => {
    const before = await findSetPolicies(tx.db, scope);
    const after = { policies: create(OrganizationPoliciesSchema, policies), origins: {} };
    await updatePolicies(tx, scope, before, after);
  });
}

const markEnterprise = (scope = caller) =>
  testStore.store.write(SYSTEM, "test", (tx) => updateEnterprise(tx, scope, true));

async function createEnvironment(desiredPhase = EnvironmentPhase.STOPPED, services = own): Promise<string> {
  const { environment } = await services.environments.createEnvironment({ spec: { desiredPhase } });
  return environment?.id ?? "";
}

/** What a runner reports: the environment is in a phase now. */
async function report(id: string, phase: EnvironmentPhase): Promise<void> {
  await testStore.store.write(SYSTEM, "test", async (tx) => {
    const before = await findEnvironment(tx.db, caller, id);
    if (!before?.status) throw new Error("no such environment");
    const after = clone(EnvironmentSchema, before);
    if (after.status) {
      after.status.phase = phase;
      after.status.statusVersion += 1n;
    }
    await updateEnvironment(tx, caller, before, after);
  });
}

async function present(id: string): Promise<Environment> {
  const { environment } = await own.environments.getEnvironment({ environmentId: id });
  if (!environment) throw new Error("no such environment");
  return environment;
}

async function archivedAt(id: string): Promise<number | undefined> {
  const { metadata } = await present(id);
  return metadata?.archivedAt && timestampMs(metadata.archivedAt);
}

const archive = () => archiveEnvironments(testStore.store, testStore.clock.now);
const remove = () => deleteArchivedEnvironments(testStore.store, testStore.clock.now);
const stopOutlived = () => stopExpiredEnvironments(testStore.store, testStore.clock.now);

describe("archival", () => {
  beforeEach(async () => {
    await markEnterprise();
    await setPolicies({ archiveEnvironmentsAfter: days(2) });
  });

  test("takes an environment once it has been stopped as long as the policy says, to the millisecond", async () => {
    const id = await createEnvironment();
    pass(2 * DAY_MS - 1);
    expect([await archive(), await archivedAt(id)]).toEqual([0, undefined]);
    pass(1);
    expect([await archive(), await archivedAt(id)]).toEqual([1, testStore.clock.now]);
    pass(DAY_MS);
    expect(await archive()).toBe(0);
  });

  test("counts from when the machine had stopped, not from when that was asked for", async () => {
    const id = await createEnvironment(EnvironmentPhase.RUNNING);
    await report(id, EnvironmentPhase.RUNNING);
    pass(5 * DAY_MS);
    await own.environments.stopEnvironment({ environmentId: id });
    pass(2 * DAY_MS);
    expect(await archive()).toBe(0);
    await report(id, EnvironmentPhase.STOPPED);
    pass(DAY_MS);
    // Another report of the same is no new stop.
    await report(id, EnvironmentPhase.STOPPED);
    pass(DAY_MS);
    expect(await archive()).toBe(1);
  });

  test("leaves environments alone that run, are wanted running or are wanted deleted", async () => {
    const running = await createEnvironment(EnvironmentPhase.RUNNING);
    await report(running, EnvironmentPhase.RUNNING);
    const starting = await createEnvironment();
    await report(starting, EnvironmentPhase.STOPPED);
    await own.environments.startEnvironment({ environmentId: starting });
    const leaving = await createEnvironment();
    await report(leaving, EnvironmentPhase.STOPPED);
    await own.environments.deleteEnvironment({ environmentId: leaving });
    pass(30 * DAY_MS);
    expect(await archive()).toBe(0);
  });

  test("ends with a start, and begins to count again with the next stop", async () => {
    const id = await createEnvironment();
    pass(2 * DAY_MS);
    await archive();
    await own.environments.startEnvironment({ environmentId: id });
    expect(await archivedAt(id)).toBeUndefined();
    pass(10 * DAY_MS);
    await own.environments.stopEnvironment({ environmentId: id });
    pass(2 * DAY_MS - 1);
    expect(await archive()).toBe(0);
    pass(1);
    expect(await archive()).toBe(1);
  });

  test("begins to count again once an environment is out of the archive, also after a call", async () => {
    const id = await createEnvironment();
    pass(2 * DAY_MS);
    await archive();
    await own.environments.unarchiveEnvironment({ environmentId: id });
    expect([await archive(), await archivedAt(id)]).toEqual([0, undefined]);
    pass(2 * DAY_MS - 1);
    expect(await archive()).toBe(0);
    pass(1);
    expect(await archive()).toBe(1);
  });

  test("is each organization's own matter", async () => {
    const strangerCaller = await testStore.createOrganization("island");
    const stranger = servicesOf(testStore, strangerCaller);
    await createEnvironment(EnvironmentPhase.STOPPED, stranger);
    pass(30 * DAY_MS);
    expect(await archive()).toBe(0);
    await setPolicies({ archiveEnvironmentsAfter: days(30) }, strangerCaller);
    expect(await archive()).toBe(0);
    await markEnterprise(strangerCaller);
    expect(await archive()).toBe(1);
  });

  test("ends when the operator takes the mark away, with the policy", async () => {
    await createEnvironment();
    pass(2 * DAY_MS);
    await setEnterprise(testStore.store, caller, false);
    expect(await archive()).toBe(0);
    await setEnterprise(testStore.store, caller, true);
    expect(await archive()).toBe(0);
  });

  test("is recorded as the system's", async () => {
    const id = await createEnvironment();
    pass(2 * DAY_MS);
    await archive();
    const { audit, events } = await testStore.history(caller);
    expect(audit.at(-1)).toMatchObject({
      actor_id: "system",
      operation: "job/archive",
      subject_id: id,
      at: testStore.clock.now,
    });
    expect(Object.keys(JSON.parse(audit.at(-1)?.diff ?? ""))).toEqual(["metadata.archivedAt"]);
    expect(events.at(-1)).toMatchObject({ kind: "updated", resource_id: id });
  });

  test("takes more than one transaction holds", async () => {
    await Promise.all(Array.from({ length: 230 }, () => createEnvironment()));
    pass(2 * DAY_MS);
    expect([await archive(), await archive()]).toEqual([230, 0]);
  });
});

describe("the deletion of archived environments", () => {
  /** An environment that was archived this instant. */
  async function archived(touched: boolean): Promise<string> {
    const id = await createEnvironment();
    if (touched) await report(id, EnvironmentPhase.STOPPED);
    await setPolicies({ archiveEnvironmentsAfter: days(1) });
    pass(DAY_MS);
    expect(await archive()).toBe(1);
    return id;
  }
  beforeEach(() => markEnterprise());

  test("removes one that no runner took on, once it has been archived as long as the policy says", async () => {
    const id = await archived(false);
    await setPolicies({ deleteArchivedEnvironmentsAfter: days(3) });
    pass(3 * DAY_MS - 1);
    expect(await remove()).toBe(0);
    pass(1);
    expect(await remove()).toBe(1);
    await expect(present(id)).rejects.toThrow("environment not found");
    expect((await testStore.history(caller)).audit.at(-1)).toMatchObject({
      actor_id: "system",
      operation: "job/deletion",
      subject_id: id,
    });
  });

  test("marks one that a runner has, once, so that the runner cleans up", async () => {
    const id = await archived(true);
    await setPolicies({ deleteArchivedEnvironmentsAfter: days(3) });
    pass(3 * DAY_MS);
    expect([await remove(), await remove()]).toEqual([1, 0]);
    expect((await present(id)).spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
  });

  test("never happens by itself without the policy, or with one of 0 s", async () => {
    await archived(false);
    pass(1000 * DAY_MS);
    expect(await remove()).toBe(0);
    await setPolicies({ deleteArchivedEnvironmentsAfter: days(0) });
    expect(await remove()).toBe(0);
  });

  test("leaves alone what is not archived", async () => {
    await createEnvironment();
    await setPolicies({ deleteArchivedEnvironmentsAfter: days(1) });
    pass(100 * DAY_MS);
    expect(await remove()).toBe(0);
  });
});

describe("the end of a lifetime", () => {
  beforeEach(() => setPolicies({ maximumEnvironmentLifetime: days(1) }));
  const desired = async (id: string) => (await present(id)).spec?.desiredPhase;

  test("stops what is wanted running, to the millisecond, and nothing else", async () => {
    const id = await createEnvironment(EnvironmentPhase.RUNNING);
    await createEnvironment();
    pass(DAY_MS - 1);
    expect(await stopOutlived()).toBe(0);
    pass(1);
    expect([await stopOutlived(), await stopOutlived()]).toEqual([1, 0]);
    expect(await desired(id)).toBe(EnvironmentPhase.STOPPED);
  });

  test("leaves one alone that was started again past its end", async () => {
    const id = await createEnvironment(EnvironmentPhase.RUNNING);
    pass(DAY_MS);
    await stopOutlived();
    await own.environments.startEnvironment({ environmentId: id });
    expect(await stopOutlived()).toBe(0);
    expect(await desired(id)).toBe(EnvironmentPhase.RUNNING);
  });

  test("forbids such a start where the lifetime is strict, and allows one right before it", async () => {
    const id = await createEnvironment();
    await setPolicies({ maximumEnvironmentLifetimeStrict: true });
    pass(DAY_MS - 1);
    await own.environments.startEnvironment({ environmentId: id });
    pass(1);
    await expect(own.environments.startEnvironment({ environmentId: id })).rejects.toThrow(
      "the organization's policy maximumEnvironmentLifetimeStrict forbids this",
    );
    expect(await stopOutlived()).toBe(1);
    await expect(own.environments.startEnvironment({ environmentId: id })).rejects.toThrow("forbids this");
  });

  test("is not reached by environments that were created without one", async () => {
    await setPolicies({});
    const id = await createEnvironment(EnvironmentPhase.RUNNING);
    await setPolicies({ maximumEnvironmentLifetime: days(1) });
    pass(100 * DAY_MS);
    expect(await stopOutlived()).toBe(0);
    expect(await desired(id)).toBe(EnvironmentPhase.RUNNING);
  });

  test("reaches more than one transaction holds, past those that go on", async () => {
    const ids = await Promise.all(
      Array.from({ length: 130 }, () => createEnvironment(EnvironmentPhase.RUNNING)),
    );
    pass(DAY_MS);
    expect(await stopOutlived()).toBe(130);
    for (const environmentId of ids) await own.environments.startEnvironment({ environmentId });
    const later = await createEnvironment(EnvironmentPhase.RUNNING);
    pass(DAY_MS);
    expect(await stopOutlived()).toBe(1);
    expect(await desired(later)).toBe(EnvironmentPhase.STOPPED);
  });
});

describe("a preview of policies", () => {
  const preview = async (change: MessageInitShape<typeof UpdateOrganizationPoliciesRequestSchema>) => {
    const { organizationId } = caller;
    const request = create(UpdateOrganizationPoliciesRequestSchema, { organizationId, ...change });
    const { effects, complete } = await previewPolicies(testStore.deps, caller, request);
    expect(complete).toBe(true);
    return effects.map(({ fieldPath, outcome, resources }) => [
      fieldPath,
      outcome,
      resources.map(({ id }) => id),
    ]);
  };

  test("names what would be archived, less what is archived anyway", async () => {
    await markEnterprise();
    const old = await createEnvironment();
    pass(2 * DAY_MS);
    const young = await createEnvironment();
    pass(2 * DAY_MS - 1);
    const archived = "archiveEnvironmentsAfter";
    expect(await preview({ [archived]: days(2) })).toEqual([[archived, Outcome.ARCHIVED, [old]]]);
    pass(1);
    expect(await preview({ [archived]: days(2) })).toEqual([[archived, Outcome.ARCHIVED, [old, young]]]);
    await setPolicies({ [archived]: days(4) });
    expect(await preview({ [archived]: days(2) })).toEqual([[archived, Outcome.ARCHIVED, [young]]]);
    expect(await preview({ [archived]: days(5) })).toEqual([]);
    expect(await archivedAt(old)).toBeUndefined();
  });

  test("names what would be deleted, as the job then does it", async () => {
    await markEnterprise();
    await setPolicies({ archiveEnvironmentsAfter: days(2) });
    const id = await createEnvironment();
    pass(2 * DAY_MS);
    await archive();
    pass(DAY_MS);
    const deletion = { deleteArchivedEnvironmentsAfter: days(1) };
    expect(await preview(deletion)).toEqual([["deleteArchivedEnvironmentsAfter", Outcome.DELETED, [id]]]);
    expect(await remove()).toBe(0);
    await setPolicies(deletion);
    expect(await remove()).toBe(1);
  });

  test.each([
    [-1, true],
    [0, true],
    [1, false],
  ])("looks at 8 MiB of what would be archived, and %i bytes", async (more, complete) => {
    await markEnterprise();
    const [small, large] = [await createEnvironment(), await createEnvironment()];
    const bodies = async () =>
      builderOf(testStore.store.reader)
        .selectFrom("environment")
        .select(["id", "body"])
        .orderBy("id")
        .execute();
    const [first, second] = await bodies();
    const body = JSON.parse(second?.body ?? "{}");
    const left = 8 * 1024 * 1024 + more - (first?.body.length ?? 0) - (second?.body.length ?? 0);
    body.metadata.name += "x".repeat(left);
    const stored = JSON.stringify(body);
    expect(stored.length - (second?.body.length ?? 0)).toBe(left);
    await testStore.store.write(SYSTEM, "test", async ({ db }) => {
      await builderOf(db).updateTable("environment").set({ body: stored }).where("id", "=", large).execute();
    });
    pass(2 * DAY_MS);
    const change = { organizationId: caller.organizationId, archiveEnvironmentsAfter: days(1) };
    const request = create(UpdateOrganizationPoliciesRequestSchema, change);
    const found = await previewPolicies(testStore.deps, caller, request);
    expect(found.complete).toBe(complete);
    const ids = found.effects.flatMap(({ resources }) => resources.map(({ id }) => id));
    expect(ids).toEqual(complete ? [small, large] : [small]);
  });

  test("names at most ten of what it counts", async () => {
    await markEnterprise();
    for (let index = 0; index < 11; index += 1) await createEnvironment();
    pass(2 * DAY_MS);
    const change = { organizationId: caller.organizationId, archiveEnvironmentsAfter: days(1) };
    const request = create(UpdateOrganizationPoliciesRequestSchema, change);
    const { effects } = await previewPolicies(testStore.deps, caller, request);
    expect(effects.map(({ count, resources }) => [count, resources.length])).toEqual([[11, 10]]);
  });
});
