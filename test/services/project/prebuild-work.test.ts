import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { stopTimedOutPrebuilds } from "../../../src/jobs/prebuilds.ts";
import { handlerOf } from "../../../src/services/access/work-handlers.ts";
import { openPrebuilt, type Prebuilt, REMOTE, SECOND_MS } from "./prebuilt.ts";

let made: Prebuilt;
beforeEach(async () => {
  made = await openPrebuilt();
});
afterEach(() => made.close());

describe("the work of a prebuild", () => {
  test("says what the workspace is filled with and how long that may take", async () => {
    const projectId = await made.project({ timeout: { seconds: 600n }, enableIdeWarmup: true });
    await made.passToDay(0);
    const { work, content } = await made.leaseOf("prebuild");
    const [prebuild] = await made.prebuilds();
    expect(content).toMatchObject({
      prebuildId: prebuild?.id,
      projectId,
      environmentClassId: made.classId,
      initializer: { specs: [{ spec: { case: "git", value: { remoteUri: REMOTE } } }] },
      devcontainerFilePath: "dev/devcontainer.json",
      automationsFilePath: "dev/automations.yaml",
      timeout: { seconds: 600n, nanos: 0 },
      enableIdeWarmup: true,
    });
    expect(work).toMatchObject({ attempt: 1, fence: 1n, environmentToken: "" });
    expect(work.policies?.agentPolicy).toBeDefined();
    expect(prebuild?.state).toBe("running");
  });

  test("may ask for the credentials of its executor at the hosts of its sources", async () => {
    await made.project();
    await made.passToDay(0);
    const leased = await made.leaseOf("prebuild");
    const use = await made.underLease(leased, (tx, scope, lease) =>
      handlerOf(lease.kind).credentialUse(tx, scope, lease),
    );
    const { subject } = made.caller;
    expect(use).toEqual({
      subject,
      addresses: [REMOTE],
      sourceSetBy: [subject],
      sourceKinds: ["project"],
      namedBy: subject,
    });
  });

  test("is given out three times, then what it left is removed", async () => {
    await made.project();
    await made.passToDay(0);
    for (const attempt of [1, 2, 3]) {
      const { work } = await made.leaseOf("prebuild");
      expect(work.attempt).toBe(attempt);
      expect(await made.states()).toEqual(["running"]);
      await made.lose();
    }
    expect(await made.states()).toEqual(["failing"]);
    expect(await made.failures()).toEqual([
      "the runner was lost, or gave the work back, in each of 3 attempts",
    ]);
    await made.finish(await made.leaseOf("prebuildRemoval"));
    expect(await made.states()).toEqual(["failed"]);
    expect(await made.openWork()).toEqual([]);
  });

  test("that a runner gives back goes to the next at once", async () => {
    await made.project();
    await made.passToDay(0);
    await made.finish(await made.leaseOf("prebuild"), Outcome.RELEASED);
    expect((await made.leaseOf("prebuild")).work.attempt).toBe(2);
  });

  test("fails with what the runner says, once its runner has confirmed that nothing is left", async () => {
    await made.project();
    await made.passToDay(0);
    await made.finish(await made.leaseOf("prebuild"), Outcome.FAILED, "the repository is gone");
    expect(await made.states()).toEqual(["failing"]);
    expect(await made.failures()).toEqual(["the repository is gone"]);
    // A removal that fails is tried again, and one that is done ends the prebuild without a warning.
    await made.finish(await made.leaseOf("prebuildRemoval"), Outcome.FAILED, "it is mounted");
    expect(await made.lease()).toBeUndefined();
    await made.pass(10 * SECOND_MS);
    await made.finish(await made.leaseOf("prebuildRemoval"));
    expect(await made.prebuilds()).toMatchObject([
      { state: "failed", failure: "the repository is gone", warning: "" },
    ]);
    expect(await made.failures()).toEqual(["the repository is gone"]);
    expect(await made.openWork()).toEqual([]);
  });

  test("fails no more often than is kept: the next day's takes the place of the failed one", async () => {
    await made.project();
    for (const day of [0, 1, 2]) {
      await made.passToDay(day);
      await made.finish(await made.leaseOf("prebuild"), Outcome.FAILED, `day ${day}`);
      await made.finish(await made.leaseOf("prebuildRemoval"));
    }
    expect(await made.states()).toEqual(["failed"]);
    expect(await made.failures()).toEqual(["day 0", "day 1", "day 2"]);
  });

  test("is dropped when its project gets no prebuilds any more", async () => {
    const projectId = await made.project();
    await made.passToDay(0);
    await made.own.projects.updateProject({ projectId, prebuildConfiguration: { enabled: false } });
    expect(await made.lease()).toBeUndefined();
    expect(await made.states()).toEqual(["failed"]);
    expect(await made.openWork()).toEqual([]);
  });
});

describe("the time of a prebuild", () => {
  const TIMEOUT_MS = 300 * SECOND_MS;
  const timeout = { seconds: 300n };

  test("is over when its timeout is, however often its lease is renewed", async () => {
    await made.project({ timeout });
    await made.passToDay(0);
    const leased = await made.leaseOf("prebuild");
    made.clock.now += TIMEOUT_MS - 1;
    expect(await stopTimedOutPrebuilds(made.store, made.clock.now)).toBe(0);
    expect(await made.isToStop(leased)).toBe(false);
    made.clock.now += 1;
    expect(await stopTimedOutPrebuilds(made.store, made.clock.now)).toBe(1);
    expect(await stopTimedOutPrebuilds(made.store, made.clock.now)).toBe(0);
    expect(await made.isToStop(leased)).toBe(true);
    await made.finish(leased, Outcome.STOPPED);
    await made.finish(await made.leaseOf("prebuildRemoval"));
    expect(await made.states()).toEqual(["failed"]);
    expect(await made.failures()).toEqual(["the prebuild took longer than its timeout"]);
  });

  test("is that of all attempts together", async () => {
    await made.project({ timeout });
    await made.passToDay(0);
    await made.leaseOf("prebuild");
    await made.lose();
    expect((await made.leaseOf("prebuild")).content.timeout?.seconds).toBe(270n);
  });

  test("ends while it waits for another attempt: what the first one left is removed", async () => {
    await made.project({ timeout });
    await made.passToDay(0);
    await made.leaseOf("prebuild");
    await made.lose();
    await made.pass(TIMEOUT_MS);
    expect(await made.states()).toEqual(["failing"]);
    expect(await made.openWork()).toEqual([WorkKind.PREBUILD_REMOVAL]);
  });

  test("also ends for a runner that does not stop: what it says it has done is not used", async () => {
    await made.project({ timeout });
    await made.passToDay(0);
    const leased = await made.leaseOf("prebuild");
    made.clock.now += TIMEOUT_MS;
    await stopTimedOutPrebuilds(made.store, made.clock.now);
    await made.finish(leased);
    expect(await made.states()).toEqual(["failing"]);
  });

  test("does not begin while it waits for a runner", async () => {
    await made.project({ timeout });
    await made.passToDay(0);
    await made.pass(TIMEOUT_MS);
    expect((await made.leaseOf("prebuild")).content.timeout?.seconds).toBe(300n);
  });
});
