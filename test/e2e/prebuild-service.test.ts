import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, reasonOf, repository } from "../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { addMember } from "../harness/member.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
let runner: FakeRunner;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  runner = await registerRunner(server);
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

const call = (operation: string, body: object, token = server.token) =>
  succeeded(post(server, operation, body, token));
const refusalOf = async (operation: string, body: object, token = server.token) => {
  const answer = await post(server, `PrebuildService/${operation}`, body, token);
  return [answer.status, reasonOf(answer)];
};

/** A project with prebuilds of classes, without a schedule; its id. */
async function projectWith(
  environmentClassIds: readonly string[],
  remote = "https://git.example.org/a/b.git",
) {
  const prebuildConfiguration = { environmentClassIds, timeout: "900s" };
  const request = { initializer: repository(remote), prebuildConfiguration };
  return (await call("ProjectService/CreateProject", request)).project.id as string;
}

const start = async (projectId: string, spec: object = {}) =>
  (await call("PrebuildService/CreatePrebuild", { projectId, spec })).prebuild;
const get = async (prebuildId: string) =>
  (await call("PrebuildService/GetPrebuild", { prebuildId })).prebuild;
const phaseOf = async (prebuildId: string) => (await get(prebuildId)).status.phase;
const cancel = async (prebuildId: string) =>
  (await call("PrebuildService/CancelPrebuild", { prebuildId })).prebuild.status.phase;
const remove = (prebuildId: string) => call("PrebuildService/DeletePrebuild", { prebuildId });
const list = async (filter: object): Promise<string[]> =>
  (await call("PrebuildService/ListPrebuilds", { filter })).prebuilds.map(({ id }: { id: string }) => id);
/** The runner takes the removal of a prebuild's workspace, and confirms it. */
async function confirmRemoval(prebuildId: string) {
  const removal = await runner.leaseOne();
  expect(removal.prebuildRemoval).toEqual({ prebuildId });
  await succeeded(runner.finish(removal));
}
const gone = [404, "NOT_FOUND"];

test("a prebuild that was asked for is what environments of its project start from", async () => {
  const source = bareRepository(temporaryFolder(), { "a.txt": "one\n" }, "hello.git");
  const real = await startRegisteredHostedRunner(server);
  const { environmentClasses } = await call("RunnerConfigurationService/ListEnvironmentClasses", {
    filter: { runnerIds: [real.runnerId] },
  });
  const [{ id: environmentClassId }] = environmentClasses;
  const projectId = await projectWith([environmentClassId], source.url);
  const { id } = await start(projectId);
  await until(
    () => phaseOf(id),
    (phase) => phase === "PREBUILD_PHASE_COMPLETED",
  );
  const prepared = join(real.stateDir, "prebuilds", id, "tree");
  expect(readFileSync(join(prepared, "hello", "a.txt"), "utf8")).toBe("one\n");
  writeFileSync(join(prepared, "prepared.txt"), "by the prebuild");

  const { environment } = await call("EnvironmentService/CreateEnvironmentFromProject", {
    projectId,
    spec: { desiredPhase: "ENVIRONMENT_PHASE_RUNNING", machine: { class: environmentClassId } },
  });
  await until(
    () => call("EnvironmentService/GetEnvironment", { environmentId: environment.id }),
    (body) => body.environment.status.phase === "ENVIRONMENT_PHASE_RUNNING",
  );
  const tree = join(real.stateDir, "workspaces", environment.id, "tree");
  expect(readFileSync(join(tree, "prepared.txt"), "utf8")).toBe("by the prebuild");

  await remove(id);
  await until(
    () => refusalOf("GetPrebuild", { prebuildId: id }),
    ([status]) => status === 404,
  );
  expect(existsSync(join(real.stateDir, "prebuilds", id))).toBe(false);
  expect(readFileSync(join(tree, "hello", "a.txt"), "utf8")).toBe("one\n");
  await real.stop();
});

describe("a prebuild", () => {
  test("tells who asked for it, what of it is wanted and how far it is", async () => {
    const { subject, organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {});
    const projectId = await projectWith([runner.environmentClassId]);
    const made = await start(projectId, { timeout: "600s" });
    expect(made).toEqual({
      id: made.id,
      metadata: {
        organizationId,
        projectId,
        environmentClassId: runner.environmentClassId,
        creator: subject,
        createdAt: made.metadata.createdAt,
        updatedAt: made.metadata.createdAt,
        triggeredBy: "PREBUILD_TRIGGER_MANUAL",
        executor: subject,
      },
      spec: { specVersion: "1", desiredPhase: "PREBUILD_PHASE_COMPLETED", timeout: "600s" },
      status: { phase: "PREBUILD_PHASE_PENDING", failureMessage: "", statusVersion: "1", warningMessage: "" },
    });
    expect(await get(made.id)).toEqual(made);
    const work = await runner.leaseOne();
    expect(work.prebuild).toMatchObject({ prebuildId: made.id, timeout: "600s" });
    expect((await get(made.id)).status).toMatchObject({
      phase: "PREBUILD_PHASE_RUNNING",
      statusVersion: "2",
    });
    await succeeded(runner.finish(work, "OUTCOME_FAILED", { failure: { message: "no space left" } }));
    expect((await get(made.id)).status).toMatchObject({
      phase: "PREBUILD_PHASE_STOPPING",
      failureMessage: "no space left",
    });
    await confirmRemoval(made.id);
    const failed = await get(made.id);
    expect(failed.status).toEqual({
      phase: "PREBUILD_PHASE_FAILED",
      completionTime: failed.metadata.updatedAt,
      failureMessage: "no space left",
      statusVersion: "4",
      warningMessage: "",
    });
    // The next one takes the place of the record.
    const next = await start(projectId);
    expect(await list({ projectIds: [projectId] })).toEqual([next.id]);
    expect(next.spec.timeout).toBe("900s");
    await remove(next.id);
    expect(await refusalOf("GetPrebuild", { prebuildId: next.id })).toEqual(gone);
  });

  test("is made of a class of the configuration alone, and one at a time", async () => {
    const none = await projectWith([]);
    const unusable = [400, "VALUE_UNUSABLE"];
    expect(await refusalOf("CreatePrebuild", { projectId: none, spec: {} })).toEqual(unusable);
    const { environmentClassId } = runner;
    expect(await refusalOf("CreatePrebuild", { projectId: none, environmentClassId, spec: {} })).toEqual(
      unusable,
    );
    const projectId = await projectWith([environmentClassId]);
    const spec = { desiredPhase: "PREBUILD_PHASE_CANCELLED" };
    expect(await refusalOf("CreatePrebuild", { projectId, spec })).toEqual(unusable);
    const { id } = await start(projectId);
    const unsuitable = [400, "PHASE_UNSUITABLE"];
    expect(await refusalOf("CreatePrebuild", { projectId, spec: {} })).toEqual(unsuitable);
    await call("RunnerConfigurationService/UpdateEnvironmentClass", { environmentClassId, enabled: false });
    await remove(id);
    expect(await refusalOf("CreatePrebuild", { projectId, spec: {} })).toEqual(unsuitable);
    await call("RunnerConfigurationService/UpdateEnvironmentClass", { environmentClassId, enabled: true });
    await call("ProjectService/DeleteProject", { projectId });
    expect(await refusalOf("CreatePrebuild", { projectId, spec: {} })).toEqual([400, "PENDING_DELETION"]);
  });

  test("that waits is cancelled at once, one that runs when its runner has stopped", async () => {
    const projectId = await projectWith([runner.environmentClassId]);
    const waiting = await start(projectId);
    expect(await cancel(waiting.id)).toBe("PREBUILD_PHASE_CANCELLED");
    expect(await cancel(waiting.id)).toBe("PREBUILD_PHASE_CANCELLED");
    expect(await runner.lease()).toEqual([]);

    const { id } = await start(projectId);
    const work = await runner.leaseOne();
    expect(await cancel(id)).toBe("PREBUILD_PHASE_CANCELLING");
    expect((await get(id)).spec).toMatchObject({
      specVersion: "2",
      desiredPhase: "PREBUILD_PHASE_CANCELLED",
    });
    expect((await succeeded(runner.renew(work))).stop).toBe(true);
    await succeeded(runner.finish(work, "OUTCOME_STOPPED"));
    expect(await phaseOf(id)).toBe("PREBUILD_PHASE_CANCELLING");
    await confirmRemoval(id);
    expect((await get(id)).status).toMatchObject({ phase: "PREBUILD_PHASE_CANCELLED", failureMessage: "" });

    const { id: late } = await start(projectId);
    const done = await runner.leaseOne();
    await cancel(late);
    // The runner had it ready before it learned of that: the workspace is removed.
    await succeeded(runner.finish(done));
    expect(await phaseOf(late)).toBe("PREBUILD_PHASE_CANCELLING");
    await confirmRemoval(late);
    expect(await phaseOf(late)).toBe("PREBUILD_PHASE_CANCELLED");
    await remove(late);
    expect(await list({ projectIds: [projectId] })).toEqual([]);
  });

  test("that is ready is no more cancelled, and deleted once its runner has removed it", async () => {
    const projectId = await projectWith([runner.environmentClassId]);
    const { id } = await start(projectId);
    await succeeded(runner.finish(await runner.leaseOne()));
    expect(await phaseOf(id)).toBe("PREBUILD_PHASE_COMPLETED");
    expect(await refusalOf("CancelPrebuild", { prebuildId: id })).toEqual([400, "PHASE_UNSUITABLE"]);
    await remove(id);
    await remove(id);
    expect(await get(id)).toMatchObject({
      spec: { specVersion: "3", desiredPhase: "PREBUILD_PHASE_DELETED" },
      status: { phase: "PREBUILD_PHASE_DELETING" },
    });
    expect(await refusalOf("CancelPrebuild", { prebuildId: id })).toEqual([400, "PHASE_UNSUITABLE"]);
    await confirmRemoval(id);
    expect(await refusalOf("GetPrebuild", { prebuildId: id })).toEqual(gone);
    const { entries } = await call("EventService/ListAuditLogs", { filter: { subjectIds: [id] } });
    expect(entries.at(0)).toMatchObject({ subjectType: "RESOURCE_TYPE_PREBUILD" });
  });

  test("that is being cancelled can be deleted, and goes when its runner has stopped", async () => {
    const projectId = await projectWith([runner.environmentClassId]);
    const { id } = await start(projectId);
    const work = await runner.leaseOne();
    await cancel(id);
    await remove(id);
    expect(await phaseOf(id)).toBe("PREBUILD_PHASE_DELETING");
    await succeeded(runner.finish(work, "OUTCOME_STOPPED"));
    await confirmRemoval(id);
    expect(await refusalOf("GetPrebuild", { prebuildId: id })).toEqual(gone);
  });

  test("is listed by each condition, the newest first", async () => {
    const { subject } = await call("IdentityService/GetAuthenticatedIdentity", {});
    const [one, two] = [
      await projectWith([runner.environmentClassId]),
      await projectWith([runner.environmentClassId]),
    ];
    const first = (await start(one)).id;
    const second = (await start(two)).id;
    await cancel(second);
    const projectIds = [one, two];
    expect(await list({ projectIds })).toEqual([second, first]);
    expect(await list({ projectIds: [one] })).toEqual([first]);
    expect(await list({ projectIds, phases: ["PREBUILD_PHASE_CANCELLED"] })).toEqual([second]);
    expect(await list({ projectIds, phases: ["PREBUILD_PHASE_STARTING"] })).toEqual([]);
    expect(await list({ projectIds, triggeredBy: ["PREBUILD_TRIGGER_MANUAL"] })).toEqual([second, first]);
    expect(await list({ projectIds, triggeredBy: ["PREBUILD_TRIGGER_SCHEDULED"] })).toEqual([]);
    expect(await list({ projectIds, creatorIds: [subject.id] })).toEqual([second, first]);
    expect(await list({ projectIds, executorIds: [one] })).toEqual([]);
    const page = { pagination: { pageSize: 1 }, filter: { projectIds } };
    const { pagination } = await call("PrebuildService/ListPrebuilds", page);
    const rest = { ...page, pagination: { pageSize: 1, token: pagination.nextToken } };
    expect((await call("PrebuildService/ListPrebuilds", rest)).prebuilds[0].id).toBe(first);
    for (const id of [first, second]) await remove(id);
  });

  test("is read by every member, and changed by those who may change its project", async () => {
    const { organizationId } = await call("IdentityService/GetAuthenticatedIdentity", {});
    const member = await addMember(server, { organizationId, email: "bea@example.org" });
    const projectId = await projectWith([runner.environmentClassId]);
    const { id: prebuildId } = await start(projectId);
    const denied = [403, "PERMISSION_DENIED"];
    expect(await refusalOf("CreatePrebuild", { projectId, spec: {} }, member.token)).toEqual(denied);
    expect(await refusalOf("CancelPrebuild", { prebuildId }, member.token)).toEqual(denied);
    expect(await refusalOf("DeletePrebuild", { prebuildId }, member.token)).toEqual(denied);
    const seen = await call("PrebuildService/GetPrebuild", { prebuildId }, member.token);
    expect(seen.prebuild.id).toBe(prebuildId);
    await remove(prebuildId);
    const own = await call(
      "ProjectService/CreateProject",
      {
        initializer: repository("https://git.example.org/a/b.git"),
        prebuildConfiguration: { environmentClassIds: [runner.environmentClassId] },
      },
      member.token,
    );
    const asked = { projectId: own.project.id, spec: {} };
    const { prebuild } = await call("PrebuildService/CreatePrebuild", asked, member.token);
    await call("PrebuildService/CancelPrebuild", { prebuildId: prebuild.id }, member.token);
    await call("PrebuildService/DeletePrebuild", { prebuildId: prebuild.id }, member.token);
  });
});
