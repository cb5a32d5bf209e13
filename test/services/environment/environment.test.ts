import { clone } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { EnvironmentPhase, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { findEnvironment, updateEnvironment } from "../../../src/store/environment/environment.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { MINUTE_MS, openTestStore, type TestStore } from "../../harness/test-store.ts";
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

async function stored(id: string) {
  const environment = await findEnvironment(testStore.store.reader, caller, id);
  if (!environment) throw new Error(`no environment ${id}`);
  return environment;
}

/** What a runner does later: it reports a phase, which raises the status version. */
async function report(id: string, phase: EnvironmentPhase) {
  const before = await stored(id);
  const after = clone(EnvironmentSchema, before);
  if (after.status) Object.assign(after.status, { phase, statusVersion: after.status.statusVersion + 1n });
  await testStore.store.write(SYSTEM, "test", (tx) => updateEnvironment(tx, caller, before, after));
}

describe("creating an environment", () => {
  test("answers what is then stored", async () => {
    const { environment } = await own.environments.createEnvironment({
      name: "scratch",
      annotations: { purpose: "trial" },
      spec: { content: { initializer: { specs: [gitSpec("https://git.example.org/a/b.git")] } } },
    });
    expect(await stored(environment?.id ?? "")).toEqual(environment);
    expect(environment).toMatchObject({
      metadata: {
        organizationId: caller.organizationId,
        name: "scratch",
        creator: { id: caller.subject.id },
        annotations: { purpose: "trial" },
        projectId: "",
        runnerId: "",
      },
      spec: { specVersion: 1n, desiredPhase: EnvironmentPhase.RUNNING },
      status: { statusVersion: 1n, phase: EnvironmentPhase.CREATING },
    });
  });

  test("binds it to the runner of the class it names", async () => {
    const { runnerId, classId } = await own.runnerWithClass("remote");
    const { environment } = await own.environments.createEnvironment({
      spec: { machine: { class: classId } },
    });
    expect(environment?.metadata?.runnerId).toBe(runnerId);
  });

  test("refuses a class that is absent, and one that is disabled", async () => {
    const { classId } = await own.runnerWithClass("remote");
    await own.configuration.updateEnvironmentClass({ environmentClassId: classId, enabled: false });
    const create = (id: string) => own.environments.createEnvironment({ spec: { machine: { class: id } } });
    await expect(create(testStore.newId())).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
      metadata: { resource: "environment class" },
    });
    await expect(create(classId)).rejects.toMatchObject({
      reason: ErrorReason.PHASE_UNSUITABLE,
      metadata: { phase: "disabled" },
    });
  });

  test.each([
    ["security policy", { securityPolicyId: "019b0000-0000-7000-8000-000000000001" }],
    ["workflow execution action", { workflowActionId: "019b0000-0000-7000-8000-000000000001" }],
  ])("refuses to name a %s, of which there are none yet", async (resource, spec) => {
    await expect(own.environments.createEnvironment({ spec })).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
      metadata: { resource },
    });
  });
});

describe("creating an environment from a project", () => {
  test("takes the project's name, initializer, paths and first class, and counts as its use", async () => {
    const { runnerId, classId } = await own.runnerWithClass("remote");
    const initializer = { specs: [gitSpec("https://git.example.org/team/ship.git")] };
    const { project } = await own.projects.createProject({
      initializer,
      devcontainerFilePath: ".devcontainer/devcontainer.json",
      automationsFilePath: "automations.yaml",
    });
    const projectId = project?.id ?? "";
    await own.projects.updateProjectEnvironmentClasses({
      projectId,
      projectEnvironmentClasses: [classEntry(classId)],
    });
    const { environment } = await own.environments.createEnvironmentFromProject({ projectId });
    expect(environment).toMatchObject({
      metadata: { name: "ship", projectId, runnerId },
      spec: {
        machine: { class: classId },
        content: { initializer },
        devcontainer: { devcontainerFilePath: ".devcontainer/devcontainer.json" },
        automationsFile: { automationsFilePath: "automations.yaml" },
      },
    });
    expect((await own.projects.getProject({ projectId })).project?.usedBy).toMatchObject({
      totalSubjects: 1,
      subjects: [{ id: caller.subject.id }],
    });
  });

  test("goes to the local runner when that is the project's first entry", async () => {
    const projectId = await own.project("ship");
    await own.projects.updateProjectEnvironmentClasses({
      projectId,
      projectEnvironmentClasses: [{ environmentClass: { case: "localRunner", value: true } }],
    });
    const local = await own.runners.listRunners({ filter: { kinds: [RunnerKind.LOCAL_CONFIGURATION] } });
    const { environment } = await own.environments.createEnvironmentFromProject({ projectId });
    expect(environment?.metadata?.runnerId).toBe(local.runners[0]?.runnerId);
  });

  test("is refused once the project is pending deletion, and leaves no use behind", async () => {
    const projectId = await own.project("ship");
    await own.projects.deleteProject({ projectId });
    await expect(own.use(projectId)).rejects.toMatchObject({ reason: ErrorReason.PENDING_DELETION });
    expect((await own.environments.listEnvironments({})).environments).toEqual([]);
    expect((await own.projects.getProject({ projectId })).project?.usedBy?.totalSubjects).toBe(0);
  });

  test("leaves no event of the project", async () => {
    const projectId = await own.project("ship");
    await own.use(projectId);
    const { events } = await testStore.history(caller);
    expect(events.slice(-2).map(({ kind, resource_type }) => `${resource_type} ${kind}`)).toEqual([
      "project created",
      "environment created",
    ]);
  });
});

describe("starting, stopping and deleting an environment", () => {
  test("a start says when it was asked for, and only a change of the spec raises its version", async () => {
    const id = await own.use(await own.project("ship"));
    await own.environments.stopEnvironment({ environmentId: id });
    expect((await stored(id)).spec).toMatchObject({
      desiredPhase: EnvironmentPhase.STOPPED,
      specVersion: 2n,
    });
    testStore.clock.now += MINUTE_MS;
    await own.environments.startEnvironment({ environmentId: id });
    await own.environments.startEnvironment({ environmentId: id });
    const { spec, metadata } = await stored(id);
    expect(spec).toMatchObject({ desiredPhase: EnvironmentPhase.RUNNING, specVersion: 3n });
    expect(metadata?.lastStartedAt).toEqual(timestampFromMs(testStore.clock.now));
  });

  test("to stop what is already wanted stopped records nothing", async () => {
    const id = await own.use(await own.project("ship"));
    await own.environments.stopEnvironment({ environmentId: id });
    const before = await testStore.history(caller);
    await own.environments.stopEnvironment({ environmentId: id });
    expect(await testStore.history(caller)).toEqual(before);
  });

  test("what no runner took on is removed at once", async () => {
    const id = await own.use(await own.project("ship"));
    await own.environments.deleteEnvironment({ environmentId: id });
    await expect(own.environments.getEnvironment({ environmentId: id })).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
  });

  test("what a runner took on waits for it, refuses to start or stop, and goes by force", async () => {
    const id = await own.use(await own.project("ship"));
    await report(id, EnvironmentPhase.RUNNING);
    await own.environments.deleteEnvironment({ environmentId: id });
    await own.environments.deleteEnvironment({ environmentId: id });
    expect(await stored(id)).toMatchObject({
      spec: { desiredPhase: EnvironmentPhase.DELETED, specVersion: 2n },
      status: { phase: EnvironmentPhase.RUNNING },
    });
    const pending = { reason: ErrorReason.PENDING_DELETION, metadata: { resource: "environment" } };
    await expect(own.environments.startEnvironment({ environmentId: id })).rejects.toMatchObject(pending);
    await expect(own.environments.stopEnvironment({ environmentId: id })).rejects.toMatchObject(pending);
    await own.environments.deleteEnvironment({ environmentId: id, force: true });
    expect(await findEnvironment(testStore.store.reader, caller, id)).toBeUndefined();
  });

  test("each change leaves one audit row that says what changed", async () => {
    const id = await own.use(await own.project("ship"));
    await own.environments.stopEnvironment({ environmentId: id });
    const { audit } = await testStore.history(caller);
    expect(JSON.parse(audit.at(-1)?.diff ?? "")).toEqual({
      "spec.desiredPhase": ["ENVIRONMENT_PHASE_RUNNING", "ENVIRONMENT_PHASE_STOPPED"],
      "spec.specVersion": ["1", "2"],
    });
    expect(audit.at(-1)).toMatchObject({
      operation: "service.v1.EnvironmentService/StopEnvironment",
      actor_id: caller.subject.id,
      at: testStore.clock.now,
    });
  });
});

describe("archiving an environment by a call", () => {
  const stopped = async () => {
    const { environment } = await own.environments.createEnvironment({
      name: "scratch",
      spec: { desiredPhase: EnvironmentPhase.STOPPED },
    });
    return environment?.id ?? "";
  };
  const listed = async (archived?: boolean) => {
    const { environments } = await own.environments.listEnvironments({ filter: { archived } });
    return environments.map(({ id }) => id);
  };

  test("keeps the time of the first call, is seen by those who ask for it, and ends", async () => {
    const [id, other] = [await stopped(), await stopped()];
    const at = testStore.clock.now;
    await own.environments.archiveEnvironment({ environmentId: id });
    testStore.clock.now += MINUTE_MS;
    await own.environments.archiveEnvironment({ environmentId: id });
    expect((await stored(id)).metadata?.archivedAt).toEqual(timestampFromMs(at));
    expect([await listed(true), await listed(false), await listed()]).toEqual([[id], [other], [id, other]]);
    const { count } = await own.environments.listEnvironments({
      filter: { archived: true },
      count: { include: true },
    });
    expect(count?.value).toBe(1);
    await own.environments.unarchiveEnvironment({ environmentId: id });
    const once = await testStore.history(caller);
    await own.environments.unarchiveEnvironment({ environmentId: id });
    expect(await testStore.history(caller)).toEqual(once);
    expect(await listed(true)).toEqual([]);
    expect(once.audit.map(({ operation }) => operation).slice(-2)).toEqual([
      "service.v1.EnvironmentService/ArchiveEnvironment",
      "service.v1.EnvironmentService/UnarchiveEnvironment",
    ]);
  });

  test("is refused while it runs or stops, and once it is wanted deleted", async () => {
    const id = await own.use(await own.project("ship"));
    const archive = () => own.environments.archiveEnvironment({ environmentId: id });
    await report(id, EnvironmentPhase.RUNNING);
    const unsuitable = (phase: string) => ({ reason: ErrorReason.PHASE_UNSUITABLE, metadata: { phase } });
    await expect(archive()).rejects.toMatchObject(unsuitable("RUNNING"));
    await own.environments.stopEnvironment({ environmentId: id });
    await report(id, EnvironmentPhase.STOPPING);
    await expect(archive()).rejects.toMatchObject(unsuitable("STOPPING"));
    await report(id, EnvironmentPhase.STOPPED);
    await archive();
    await own.environments.deleteEnvironment({ environmentId: id });
    const pending = { reason: ErrorReason.PENDING_DELETION };
    await expect(archive()).rejects.toMatchObject(pending);
    await expect(own.environments.unarchiveEnvironment({ environmentId: id })).rejects.toMatchObject(pending);
  });
});

describe("updating an environment", () => {
  test("changes what is set, leaves the rest, and raises the version with the spec alone", async () => {
    const { environment } = await own.environments.createEnvironment({
      name: "scratch",
      spec: { content: { gitUsername: "Ada", gitEmail: "ada@example.org" }, devcontainer: { session: "d" } },
    });
    const environmentId = environment?.id ?? "";
    await own.environments.updateEnvironment({ environmentId, metadata: { name: "Renamed" }, spec: {} });
    expect(await stored(environmentId)).toEqual({
      ...environment,
      metadata: { ...environment?.metadata, name: "Renamed" },
    });
    const spec = {
      content: { gitUsername: "" },
      devcontainer: { devcontainerFilePath: "dev.json" },
      automationsFile: { automationsFilePath: "tasks.yaml" },
      timeout: { disconnected: { seconds: 1800n } },
    };
    await own.environments.updateEnvironment({ environmentId, spec });
    expect(await stored(environmentId)).toMatchObject({
      metadata: { name: "Renamed" },
      spec: {
        specVersion: 2n,
        content: { gitUsername: "", gitEmail: "ada@example.org" },
        devcontainer: { session: "d", devcontainerFilePath: "dev.json" },
        automationsFile: { automationsFilePath: "tasks.yaml" },
        timeout: { disconnected: { seconds: 1800n } },
      },
    });
    const { environments } = await own.environments.listEnvironments({ filter: { search: "renamed" } });
    expect(environments.map(({ id }) => id)).toEqual([environmentId]);
    const before = await testStore.history(caller);
    await own.environments.updateEnvironment({ environmentId, spec });
    expect(await testStore.history(caller)).toEqual(before);
  });

  test("takes a name of 80 characters and none of 81, and nothing once it is wanted deleted", async () => {
    const environmentId = await own.use(await own.project("ship"));
    const rename = (name: string) =>
      own.environments.updateEnvironment({ environmentId, metadata: { name } });
    for (const length of [79, 80]) await rename("\u{1f600}".repeat(length));
    await expect(rename("a".repeat(81))).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
      metadata: { field: "metadata.name" },
    });
    await report(environmentId, EnvironmentPhase.RUNNING);
    await own.environments.deleteEnvironment({ environmentId });
    await expect(rename("a")).rejects.toMatchObject({ reason: ErrorReason.PENDING_DELETION });
  });
});
