import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { createDuePrebuilds } from "../../../src/jobs/prebuilds.ts";
import { removeDeletedProjects } from "../../../src/jobs/project-removal.ts";
import { findPrebuild } from "../../../src/store/project/prebuild.ts";
import { DAY_MS } from "../../harness/test-store.ts";
import { gitSpec } from "../services.ts";
import { openPrebuilt, type Prebuilt, SECOND_MS } from "./prebuilt.ts";

let made: Prebuilt;
beforeEach(async () => {
  made = await openPrebuilt();
});
afterEach(() => made.close());

describe("a workspace that is ready", () => {
  /** Has the runner take a new environment of the project on. */
  async function start(projectId: string) {
    const { environment } = await made.own.environments.createEnvironmentFromProject({
      projectId,
      spec: { machine: { class: made.classId }, desiredPhase: EnvironmentPhase.RUNNING },
    });
    return { ...(await made.leaseOf("environment")), environmentId: environment?.id ?? "" };
  }

  async function readyProject(): Promise<{ projectId: string; prebuildId: string }> {
    const projectId = await made.project();
    await made.passToDay(0);
    const leased = await made.leaseOf("prebuild");
    await made.finish(leased);
    return { projectId, prebuildId: leased.content.prebuildId };
  }

  test("is what environments of its project and class start from", async () => {
    const { projectId, prebuildId } = await readyProject();
    expect((await start(projectId)).content.prebuildId).toBe(prebuildId);
  });

  test("is not until the runner has said so", async () => {
    const projectId = await made.project();
    await made.passToDay(0);
    await made.leaseOf("prebuild");
    expect((await start(projectId)).content.prebuildId).toBe("");
  });

  test("is nothing for an environment of another project, of other sources, or that was there before", async () => {
    const { projectId, prebuildId } = await readyProject();
    expect((await start(await made.own.project("boat"))).content.prebuildId).toBe("");
    const leased = await start(projectId);
    expect(leased.content.prebuildId).toBe(prebuildId);
    await made.finish(leased);
    const { environmentId } = leased;
    await made.own.environments.stopEnvironment({ environmentId });
    await made.finish(await made.leaseOf("environment"));
    await made.own.environments.startEnvironment({ environmentId });
    expect((await made.leaseOf("environment")).content.prebuildId).toBe("");
    const initializer = { specs: [gitSpec("https://git.example.org/team/other.git")] };
    await made.own.projects.updateProject({ projectId, initializer });
    expect((await start(projectId)).content.prebuildId).toBe("");
  });

  test("takes the place of the one before, which its runner removes", async () => {
    const { projectId, prebuildId } = await readyProject();
    await made.passToDay(1);
    const next = await made.leaseOf("prebuild");
    expect((await start(projectId)).content.prebuildId).toBe(prebuildId);
    await made.finish(next);
    const removal = await made.leaseOf("prebuildRemoval");
    expect(removal.content.prebuildId).toBe(prebuildId);
    expect(removal.work.environmentToken).toBe("");
    expect((await start(projectId)).content.prebuildId).toBe(next.content.prebuildId);
    await made.finish(removal);
    expect(await made.states()).toEqual(["ready"]);
  });

  test("of an earlier day that comes late does not take the place of a later one", async () => {
    await made.project();
    await made.passToDay(0);
    const late = await made.leaseOf("prebuild");
    const before = made.clock.now;
    made.clock.now = before + DAY_MS;
    await createDuePrebuilds(made.store, made.clock.now);
    const next = await made.leaseOf("prebuild");
    await made.finish(next);
    await made.finish(late);
    expect((await findPrebuild(made.store.reader, made.caller, late.content.prebuildId))?.state).toBe(
      "removing",
    );
    expect((await findPrebuild(made.store.reader, made.caller, next.content.prebuildId))?.state).toBe(
      "ready",
    );
  });

  test("whose removal fails is tried again twice, and then left to people", async () => {
    await readyProject();
    await made.passToDay(1);
    await made.finish(await made.leaseOf("prebuild"));
    for (const attempt of [1, 2, 3]) {
      const removal = await made.leaseOf("prebuildRemoval");
      expect(removal.work.attempt).toBe(attempt);
      await made.finish(removal, Outcome.FAILED, "it is in use");
      expect(await made.lease()).toBeUndefined();
      await made.pass(10 * SECOND_MS);
    }
    expect(await made.states()).toEqual(["ready"]);
    const { audit } = await made.history(made.caller);
    expect(audit.at(-1)).toMatchObject({
      subject_type: "prebuild",
      reason: "its workspace may still be at the runner: it is in use",
    });
  });
});

describe("a project that is pending deletion", () => {
  const deleteProject = (projectId: string) => made.own.projects.deleteProject({ projectId });
  const isThere = async () => (await made.own.projects.listProjects({})).projects.length === 1;

  async function removed(): Promise<boolean> {
    await removeDeletedProjects(made.store);
    return !(await isThere());
  }

  test("stays until what was prepared for it has been removed", async () => {
    const projectId = await made.project();
    await made.passToDay(0);
    await made.finish(await made.leaseOf("prebuild"));
    await deleteProject(projectId);
    expect(await removed()).toBe(false);
    const removal = await made.leaseOf("prebuildRemoval");
    expect(await removed()).toBe(false);
    await made.finish(removal);
    expect(await removed()).toBe(true);
  });

  test.each([
    ["waits", async () => {}],
    [
      "failed",
      async () => {
        await made.finish(await made.leaseOf("prebuild"), Outcome.FAILED, "no");
        await made.finish(await made.leaseOf("prebuildRemoval"));
      },
    ],
  ])("goes at once while its prebuild %s", async (_, act) => {
    const projectId = await made.project();
    await made.passToDay(0);
    await act();
    await deleteProject(projectId);
    expect(await removed()).toBe(true);
    expect(await made.openWork()).toEqual([]);
  });

  test.each([
    ["stops", Outcome.STOPPED],
    ["fails", Outcome.FAILED],
    ["is done with", Outcome.DONE],
    ["gives back", Outcome.RELEASED],
  ])("waits for a prebuild that runs: the runner %s it", async (_, outcome) => {
    const projectId = await made.project();
    await made.passToDay(0);
    const leased = await made.leaseOf("prebuild");
    await deleteProject(projectId);
    expect(await made.isToStop(leased)).toBe(true);
    expect(await removed()).toBe(false);
    await made.finish(leased, outcome);
    expect(await made.openWork()).toEqual([WorkKind.PREBUILD_REMOVAL]);
    await made.finish(await made.leaseOf("prebuildRemoval"));
    expect(await removed()).toBe(true);
  });

  test("gets no prebuilds any more", async () => {
    const projectId = await made.project();
    await made.own.use(projectId);
    await deleteProject(projectId);
    await made.passToDay(1);
    expect(await made.states()).toEqual([]);
    expect(await isThere()).toBe(true);
  });
});
