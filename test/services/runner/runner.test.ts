import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { RunnerPhase } from "#gen/service/v1/runner_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { removeExpiredTokens } from "../../../src/jobs/token-expiry.ts";
import { findTokens } from "../../../src/store/identity/token.ts";
import { DAY_MS, openTestStore, type TestStore, userOf } from "../../harness/test-store.ts";
import { classEntry, gitSpec, type Services, servicesOf } from "../services.ts";

let testStore: TestStore;
let caller: Caller;
let own: Services;

beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  own = servicesOf(testStore, caller);
});
afterEach(() => testStore.close());

const exchangeTokens = (runnerId: string) => findTokens(testStore.store.reader, caller, "exchange", runnerId);

async function localConfigurationId(): Promise<string> {
  const { runners } = await own.runners.listRunners({ filter: { kinds: [RunnerKind.LOCAL_CONFIGURATION] } });
  expect(runners).toHaveLength(1);
  return runners[0]?.runnerId ?? "";
}

describe("creating a runner", () => {
  test("answers it as it is then stored, with a token of which only the hash is kept", async () => {
    const { runner, exchangeToken } = await own.runners.createRunner({ name: "north" });
    const runnerId = runner?.runnerId ?? "";
    expect((await own.runners.getRunner({ runnerId })).runner).toEqual(runner);
    expect(runner).toMatchObject({
      kind: RunnerKind.REMOTE,
      spec: { desiredPhase: RunnerPhase.ACTIVE },
      status: { phase: RunnerPhase.CREATED },
      creator: { id: caller.subject.id },
    });
    expect(exchangeToken).toMatch(/^cr_exc_/);
    const read = testStore.keys.readToken(exchangeToken);
    const [token, ...others] = await exchangeTokens(runnerId);
    expect(others).toEqual([]);
    expect(token).toMatchObject({ expires_at: testStore.clock.now + DAY_MS, body: "{}" });
    expect(Buffer.from(token?.hash ?? []).equals(Buffer.from(read?.hash ?? []))).toBe(true);
    const { audit } = await testStore.history(caller);
    expect(JSON.stringify(audit)).not.toContain(exchangeToken);
  });

  test("refuses the kind that the system makes", async () => {
    await expect(
      own.runners.createRunner({ name: "north", kind: RunnerKind.LOCAL_CONFIGURATION }),
    ).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE, metadata: { field: "kind" } });
  });
});

describe("updating a runner", () => {
  test("changes what is set, says when, and leaves no trace where nothing changes", async () => {
    const { runner } = await own.runners.createRunner({ name: "north" });
    const runnerId = runner?.runnerId ?? "";
    const present = async () => (await own.runners.getRunner({ runnerId })).runner;
    testStore.clock.now += DAY_MS;
    await own.runners.updateRunner({ runnerId, spec: { desiredPhase: RunnerPhase.INACTIVE } });
    await own.runners.updateRunner({ runnerId, name: "south" });
    expect(await present()).toEqual({
      ...runner,
      name: "south",
      spec: { ...runner?.spec, desiredPhase: RunnerPhase.INACTIVE },
      updatedAt: timestampFromMs(testStore.clock.now),
    });
    const before = await testStore.history(caller);
    expect(before.audit.slice(-2).map(({ diff }) => Object.keys(JSON.parse(diff)).toSorted())).toEqual([
      ["spec.desiredPhase", "updatedAt"],
      ["name"],
    ]);
    testStore.clock.now += DAY_MS;
    await own.runners.updateRunner({ runnerId, name: "south", spec: {} });
    expect(await testStore.history(caller)).toEqual(before);
  });

  test.each([RunnerPhase.UNSPECIFIED, RunnerPhase.CREATED, RunnerPhase.DELETING, RunnerPhase.DELETED])(
    "refuses the phase %s",
    async (desiredPhase) => {
      const { runner } = await own.runners.createRunner({ name: "north" });
      await expect(
        own.runners.updateRunner({ runnerId: runner?.runnerId ?? "", spec: { desiredPhase } }),
      ).rejects.toMatchObject({
        reason: ErrorReason.VALUE_UNUSABLE,
        metadata: { field: "spec.desiredPhase" },
      });
    },
  );

  test("refuses the runner that represents local runners", async () => {
    const runnerId = await localConfigurationId();
    await expect(own.runners.updateRunner({ runnerId, name: "mine" })).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
      metadata: { field: "runnerId" },
    });
  });
});

describe("exchange tokens", () => {
  test("a new one replaces the older", async () => {
    const created = await own.runners.createRunner({ name: "north" });
    const runnerId = created.runner?.runnerId ?? "";
    const { exchangeToken } = await own.runners.createRunnerToken({ runnerId });
    expect(exchangeToken).not.toBe(created.exchangeToken);
    const hashes = (await exchangeTokens(runnerId)).map(({ hash }) => Buffer.from(hash).toString("hex"));
    expect(hashes).toEqual([
      Buffer.from(testStore.keys.readToken(exchangeToken)?.hash ?? []).toString("hex"),
    ]);
  });

  test("there is none for the runner that represents local runners", async () => {
    await expect(
      own.runners.createRunnerToken({ runnerId: await localConfigurationId() }),
    ).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE });
  });

  test("are removed when they expired, and personal ones stay", async () => {
    const { runner: older } = await own.runners.createRunner({ name: "older" });
    testStore.clock.now += 1;
    const { runner: newer } = await own.runners.createRunner({ name: "newer" });
    testStore.clock.now += DAY_MS - 1;
    expect(await removeExpiredTokens(testStore.store, testStore.clock.now)).toBe(1);
    expect(await exchangeTokens(older?.runnerId ?? "")).toEqual([]);
    expect(await exchangeTokens(newer?.runnerId ?? "")).toHaveLength(1);
    expect(await removeExpiredTokens(testStore.store, testStore.clock.now + 1_000 * DAY_MS)).toBe(1);
    expect((await own.users.listPersonalAccessTokens({})).personalAccessTokens).toHaveLength(1);
  });
});

describe("listing runners", () => {
  test("goes by creation, a page at a time, with the system's own among them", async () => {
    const local = await localConfigurationId();
    const made: string[] = [];
    for (const name of ["one", "two", "three", "four"]) {
      made.push((await own.runners.createRunner({ name })).runner?.runnerId ?? "");
    }
    const found: string[] = [];
    let token = "";
    do {
      const page = await own.runners.listRunners({ pagination: { pageSize: 2, token } });
      found.push(...page.runners.map(({ runnerId }) => runnerId));
      token = page.pagination?.nextToken ?? "";
    } while (token !== "");
    expect(found).toEqual([local, ...made]);
  });

  test("by creator and kind finds what matches both", async () => {
    const colleagueId = testStore.newId();
    const colleague = servicesOf(testStore, userOf(caller, colleagueId));
    await own.runners.createRunner({ name: "mine" });
    await colleague.runners.createRunner({ name: "theirs", kind: RunnerKind.LOCAL });
    const { runner } = await colleague.runners.createRunner({ name: "theirs too" });
    const { runners } = await own.runners.listRunners({
      filter: { creatorIds: [colleagueId], kinds: [RunnerKind.REMOTE] },
    });
    expect(runners).toEqual([runner]);
  });
});

describe("deleting a runner", () => {
  test("is refused while environments are on it, and then nothing is gone", async () => {
    const { runnerId, classId } = await own.runnerWithClass("north");
    await own.environments.createEnvironment({ spec: { machine: { class: classId } } });
    await expect(own.runners.deleteRunner({ runnerId })).rejects.toMatchObject({
      reason: ErrorReason.IN_USE,
      metadata: { resource: "runner", used_by: "environment" },
    });
    expect(
      (await own.configuration.getEnvironmentClass({ environmentClassId: classId })).environmentClass?.id,
    ).toBe(classId);
    expect(await exchangeTokens(runnerId)).toHaveLength(1);
  });

  test("by force takes its environments, classes and token, and drops what projects say of them", async () => {
    const gone = await own.runnerWithClass("gone");
    const kept = await own.runnerWithClass("kept");
    const { project } = await own.projects.createProject({
      initializer: { specs: [gitSpec("https://git.example.org/team/ship.git")] },
      technicalDescription: "a ship",
      prebuildConfiguration: { enabled: true, environmentClassIds: [gone.classId, kept.classId] },
    });
    const projectId = project?.id ?? "";
    await own.projects.updateProjectEnvironmentClasses({
      projectId,
      projectEnvironmentClasses: [classEntry(gone.classId, 1), classEntry(kept.classId, 2)],
    });
    const { project: prebuildOnly } = await own.projects.createProject({
      initializer: { specs: [gitSpec("https://git.example.org/team/boat.git")] },
      prebuildConfiguration: { enabled: true, environmentClassIds: [gone.classId] },
    });
    const untouchedId = await own.project("untouched");
    const { project: untouched } = await own.projects.getProject({ projectId: untouchedId });
    const environmentId = await own.use(projectId);
    // More than are read at a time.
    const others = 40;
    for (let made = 0; made < others; made += 1) await own.use(projectId);
    testStore.clock.now += 1_000;

    await own.runners.deleteRunner({ runnerId: gone.runnerId, force: true });

    const notFound = { reason: ErrorReason.NOT_FOUND };
    await expect(own.runners.getRunner({ runnerId: gone.runnerId })).rejects.toMatchObject(notFound);
    await expect(own.environments.getEnvironment({ environmentId })).rejects.toMatchObject(notFound);
    expect((await own.environments.listEnvironments({})).environments).toEqual([]);
    await expect(
      own.configuration.getEnvironmentClass({ environmentClassId: gone.classId }),
    ).rejects.toMatchObject(notFound);
    expect(await exchangeTokens(gone.runnerId)).toEqual([]);
    const after = (await own.projects.getProject({ projectId })).project;
    expect(after?.environmentClasses).toMatchObject([classEntry(kept.classId, 2)]);
    expect(after?.environmentClass).toMatchObject(classEntry(kept.classId, 2));
    expect(after?.prebuildConfiguration?.environmentClassIds).toEqual([kept.classId]);
    const boat = (await own.projects.getProject({ projectId: prebuildOnly?.id ?? "" })).project;
    expect(boat?.prebuildConfiguration?.environmentClassIds).toEqual([]);
    expect((await own.projects.getProject({ projectId: untouchedId })).project).toEqual(untouched);
    const { projects } = await own.projects.listProjects({ filter: { runnerIds: [gone.runnerId] } });
    expect(projects).toEqual([]);
    // What updates hide is still there, and a later update finds nothing amiss.
    const { project: renamed } = await own.projects.updateProject({ projectId, name: "renamed" });
    expect(renamed?.technicalDescription).toBe("a ship");
    const { audit } = await testStore.history(caller);
    const kinds = audit
      .filter(({ operation }) => operation === "service.v1.RunnerService/DeleteRunner")
      .map(({ subject_type }) => subject_type);
    const environments = Array(1 + others).fill("environment");
    expect(kinds).toEqual([...environments, "project", "project", "environment_class", "token", "runner"]);
  });

  test("also works while a project that names it is pending deletion", async () => {
    const { runnerId, classId } = await own.runnerWithClass("north");
    const projectId = await own.project("ship");
    await own.projects.updateProjectEnvironmentClasses({
      projectId,
      projectEnvironmentClasses: [classEntry(classId)],
    });
    await own.projects.deleteProject({ projectId });
    await own.runners.deleteRunner({ runnerId });
    expect((await own.projects.getProject({ projectId })).project?.environmentClasses).toEqual([]);
  });

  test("is refused for the runner that represents local runners", async () => {
    await expect(
      own.runners.deleteRunner({ runnerId: await localConfigurationId(), force: true }),
    ).rejects.toMatchObject({ reason: ErrorReason.IN_USE });
  });
});
