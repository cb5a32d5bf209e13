import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import {
  PrebuildPhase as Phase,
  PrebuildMetadata_PrebuildTrigger as Trigger,
} from "#gen/service/v1/prebuild_pb.js";
import { stopTimedOutPrebuilds } from "../../../src/jobs/prebuilds.ts";
import { removeDeletedProjects } from "../../../src/jobs/project-removal.ts";
import { expirePrebuild } from "../../../src/services/project/prebuild-end.ts";
import { PREBUILD_SERVICE_LEVEL } from "../../../src/store/feature-level.ts";
import { SYSTEM, within } from "../../../src/store/store.ts";
import { MINUTE_MS, START_MS } from "../../harness/test-store.ts";
import { gitSpec, servicesOf } from "../services.ts";
import { HOUR_MS, type Leased, openPrebuilt, type Prebuilt, REMOTE } from "./prebuilt.ts";

let made: Prebuilt;
beforeEach(async () => {
  made = await openPrebuilt();
});
afterEach(() => made.close());

const start = async (projectId: string) =>
  (await made.own.prebuilds.createPrebuild({ projectId, spec: {} })).prebuild?.id ?? "";
const get = async (prebuildId: string) => (await made.own.prebuilds.getPrebuild({ prebuildId })).prebuild;
const phases = async () =>
  (await made.own.prebuilds.listPrebuilds({})).prebuilds.map(({ status }) => status?.phase);

/** Has the runner fail to remove a workspace until it is left to people. */
async function failRemoval(look?: () => Promise<void>) {
  for (const _ of [1, 2, 3]) {
    await look?.();
    await made.finish(await made.leaseOf("prebuildRemoval"), Outcome.FAILED, "it is mounted");
    await made.pass(MINUTE_MS);
  }
}

/** A project of which prebuilds are only made when somebody asks; its id. */
const unscheduled = () => made.project({ enabled: false });

describe("a prebuild that was asked for", () => {
  test("is made where the configuration enables none, and not once it does not name the class", async () => {
    const projectId = await unscheduled();
    const id = await start(projectId);
    await made.own.projects.updateProject({ projectId, prebuildConfiguration: { environmentClassIds: [] } });
    expect(await made.lease()).toBeUndefined();
    expect((await get(id))?.status).toMatchObject({
      phase: Phase.FAILED,
      failureMessage: "the project gets no prebuilds any more",
    });
  });

  test("is what the next one replaces, also one of the schedule", async () => {
    await made.project();
    await made.passToDay(0);
    await made.finish(await made.leaseOf("prebuild"));
    const [scheduled] = await made.prebuilds();
    const id = await start(scheduled?.projectId ?? "");
    await made.finish(await made.leaseOf("prebuild"));
    expect(await made.states()).toEqual(["ready", "removing"]);
    await made.finish(await made.leaseOf("prebuildRemoval"));
    expect((await made.prebuilds()).map((each) => each.id)).toEqual([id]);
    await made.passToDay(1);
    await made.finish(await made.leaseOf("prebuild"));
    expect(await made.states()).toEqual(["ready", "removing"]);
    expect((await get(id))?.status?.phase).toBe(Phase.DELETING);
  });

  test.each(["waiting", "running"])("has the schedule make none of the day while it is %s", async (state) => {
    const projectId = await made.project();
    await made.passTo(START_MS + 3 * HOUR_MS - 1);
    const id = await start(projectId);
    if (state === "running") await made.leaseOf("prebuild");
    await made.passTo(START_MS + 3 * HOUR_MS + 15 * MINUTE_MS);
    expect((await made.prebuilds()).map((each) => [each.id, each.state])).toEqual([[id, state]]);
    await made.finish(await made.leaseOf("prebuild"));
    await made.passToDay(1);
    expect(await made.states()).toEqual(["waiting", "ready"]);
  });

  test("is listed with those of the schedule, each with who asked for it", async () => {
    const { subject } = made.caller;
    const robot = { id: made.newId(), principal: Principal.SERVICE_ACCOUNT };
    await made.project();
    await made.passToDay(0);
    const manual = await start(await unscheduled());
    const listed = async (filter: object) =>
      (await made.own.prebuilds.listPrebuilds({ filter })).prebuilds.map(({ id }) => id);
    const [scheduled = ""] = await listed({ triggeredBy: [Trigger.SCHEDULED] });
    expect((await get(scheduled))?.metadata).toMatchObject({
      creator: subject,
      executor: subject,
      triggeredBy: Trigger.SCHEDULED,
    });
    expect(await listed({ triggeredBy: [Trigger.MANUAL] })).toEqual([manual]);
    expect(await listed({ triggeredBy: [Trigger.MANUAL, Trigger.SCHEDULED] })).toEqual([manual, scheduled]);
    expect(await listed({ triggeredBy: [Trigger.UNSPECIFIED] })).toEqual([]);
    expect(await listed({ creatorIds: [subject.id] })).toEqual([manual, scheduled]);
    expect(await listed({ creatorIds: [robot.id] })).toEqual([]);
  });

  test("is not another organization's to see or to end", async () => {
    const id = await start(await unscheduled());
    const other = servicesOf(made, await made.createOrganization("lighthouse"));
    expect((await other.prebuilds.listPrebuilds({})).prebuilds).toEqual([]);
    for (const operation of ["getPrebuild", "cancelPrebuild", "deletePrebuild"] as const) {
      await expect(other.prebuilds[operation]({ prebuildId: id })).rejects.toThrow("prebuild not found");
    }
  });
});

describe("the end of a prebuild", () => {
  test.each<[string, (leased: Leased) => Promise<unknown>]>([
    ["was lost", () => made.lose()],
    ["failed", (leased) => made.finish(leased, Outcome.FAILED, "no space left")],
    ["stopped", (leased) => made.finish(leased, Outcome.STOPPED)],
  ])("whose runner %s waits for the removal, and warns where that fails", async (how, end) => {
    const id = await start(await unscheduled());
    const leased = await made.leaseOf("prebuild");
    if (how === "was lost") await end(leased);
    await made.own.prebuilds.cancelPrebuild({ prebuildId: id });
    if (how !== "was lost") await end(leased);
    expect(await made.openWork()).toEqual([WorkKind.PREBUILD_REMOVAL]);
    await failRemoval(() => expect(phases()).resolves.toEqual([Phase.CANCELLING]));
    expect((await get(id))?.status).toMatchObject({
      phase: Phase.CANCELLED,
      failureMessage: "",
      warningMessage: "its workspace may still be at the runner: it is mounted",
    });
    expect(await made.openWork()).toEqual([]);
  });

  test.each<[string, (prebuildId: string, projectId: string) => Promise<unknown>]>([
    ["is deleted", (prebuildId) => made.own.prebuilds.deletePrebuild({ prebuildId })],
    ["is overtaken", (_, projectId) => start(projectId)],
    ["goes with its project", (_, projectId) => made.own.projects.deleteProject({ projectId })],
  ])("that left a workspace has it removed when the record %s", async (_, remove) => {
    const projectId = await unscheduled();
    const id = await start(projectId);
    await made.leaseOf("prebuild");
    await made.lose();
    await made.own.prebuilds.cancelPrebuild({ prebuildId: id });
    await failRemoval();
    await remove(id, projectId);
    expect((await get(id))?.status?.phase).toBe(Phase.DELETING);
    const removal = await made.leaseOf("prebuildRemoval");
    expect(removal.content.prebuildId).toBe(id);
    await made.finish(removal);
    await expect(get(id)).rejects.toThrow("prebuild not found");
  });

  test.each<[string, (leased: Leased) => Promise<unknown>]>([
    ["stops", (leased) => made.finish(leased, Outcome.STOPPED)],
    ["was done already", (leased) => made.finish(leased)],
    ["is lost", () => made.lose()],
  ])("that was deleted tells of no failure where its runner %s", async (_, end) => {
    for (const isCancelled of [true, false]) {
      const prebuildId = await start(await unscheduled());
      const leased = await made.leaseOf("prebuild");
      if (isCancelled) await made.own.prebuilds.cancelPrebuild({ prebuildId });
      await made.own.prebuilds.deletePrebuild({ prebuildId });
      await end(leased);
      await made.finish(await made.leaseOf("prebuildRemoval"));
    }
    expect(await made.states()).toEqual([]);
    expect(await made.failures()).toEqual([]);
    const { audit } = await made.history(made.caller);
    const reasons = audit.flatMap(({ subject_type, reason }) =>
      subject_type === "prebuild" ? [reason] : [],
    );
    expect(reasons.filter(Boolean)).toEqual([]);
  });

  test("is that of its project, when that is deleted meanwhile", async () => {
    const projectId = await unscheduled();
    const id = await start(projectId);
    const leased = await made.leaseOf("prebuild");
    await made.own.prebuilds.cancelPrebuild({ prebuildId: id });
    await made.own.projects.deleteProject({ projectId });
    expect(await phases()).toEqual([Phase.DELETING]);
    await made.finish(leased, Outcome.STOPPED);
    await made.finish(await made.leaseOf("prebuildRemoval"));
    expect(await made.states()).toEqual([]);
    expect(await removeDeletedProjects(made.store)).toBe(1);
  });

  test("after its timeout is a failure, which can be deleted before its runner has stopped", async () => {
    const id = await start(await unscheduled());
    const leased = await made.leaseOf("prebuild");
    made.clock.now += HOUR_MS;
    await stopTimedOutPrebuilds(made.store, made.clock.now);
    expect(await phases()).toEqual([Phase.STOPPING]);
    await expect(made.own.prebuilds.cancelPrebuild({ prebuildId: id })).rejects.toThrow(
      "only a prebuild that waits or runs can be cancelled",
    );
    await made.own.prebuilds.deletePrebuild({ prebuildId: id });
    await made.finish(leased, Outcome.STOPPED);
    await made.finish(await made.leaseOf("prebuildRemoval"));
    expect(await made.states()).toEqual([]);
  });

  test("is one that servers of the release before know, while some run", async () => {
    const id = await start(await unscheduled());
    await made.leaseOf("prebuild");
    await made.store.write(
      SYSTEM,
      "test",
      (tx) => expirePrebuild({ ...tx, featureLevel: PREBUILD_SERVICE_LEVEL - 1 }, made.caller, id),
      within(made.caller),
    );
    expect(await made.states()).toEqual(["removing"]);
  });
});

test("prebuilds that were asked for in one millisecond each have a time of their own", async () => {
  made.clock.now = START_MS + HOUR_MS;
  const { project } = await made.own.projects.createProject({
    initializer: { specs: [gitSpec(REMOTE)] },
    prebuildConfiguration: { environmentClassIds: [made.classId] },
  });
  const ids: string[] = [];
  for (const _ of [1, 2]) {
    const id = await start(project?.id ?? "");
    await made.own.prebuilds.cancelPrebuild({ prebuildId: id });
    ids.push(id);
  }
  const [latest] = await made.prebuilds();
  expect([latest?.id, latest?.instantMs]).toEqual([ids[1], made.clock.now + 1]);
});
