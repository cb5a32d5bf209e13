import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  type Environment,
  EnvironmentSchema,
  EnvironmentPhase as Phase,
} from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  assignedEnvironment,
  completedEnvironment,
  failedEnvironment,
  needsWork,
  orphanedEnvironment,
  reportedEnvironment,
} from "./environment-phase.ts";

const environment = (phase: Phase, desiredPhase = Phase.RUNNING, more: object = {}): Environment =>
  create(EnvironmentSchema, {
    id: "e",
    metadata: {},
    spec: { desiredPhase, specVersion: 1n, ...more },
    status: { phase, statusVersion: 2n },
  });
const report = (present: Environment, phase: Phase, failureMessage = "") =>
  reportedEnvironment(present, { phase, failureMessage });

const REPORTED = [
  Phase.CREATING,
  Phase.STARTING,
  Phase.RUNNING,
  Phase.UPDATING,
  Phase.STOPPING,
  Phase.STOPPED,
  Phase.DELETING,
  Phase.DELETED,
];

describe("a report", () => {
  test.each([
    [Phase.CREATING, [Phase.STARTING, Phase.RUNNING, Phase.STOPPING, Phase.STOPPED]],
    [Phase.STARTING, [Phase.CREATING, Phase.RUNNING, Phase.STOPPING, Phase.STOPPED]],
    [Phase.RUNNING, [Phase.UPDATING, Phase.STOPPING, Phase.STOPPED]],
    [Phase.UPDATING, [Phase.RUNNING, Phase.STOPPING, Phase.STOPPED]],
    [Phase.STOPPING, [Phase.STARTING, Phase.RUNNING, Phase.STOPPED]],
    [Phase.STOPPED, [Phase.STARTING, Phase.RUNNING]],
    [Phase.DELETING, []],
    [Phase.DELETED, []],
  ])("from phase %i leads to no others than %j", (from, allowed) => {
    for (const to of REPORTED) {
      const moved = () => report(environment(from), to)?.status;
      if (to === from) expect(moved()).toBe(undefined);
      else if (allowed.includes(to)) expect(moved()).toMatchObject({ phase: to, statusVersion: 3n });
      else expect(moved).toThrow(expect.objectContaining({ reason: ErrorReason.PHASE_UNSUITABLE }));
    }
  });

  test("that an environment goes is taken only of one that is wanted deleted, and from any phase", () => {
    for (const from of REPORTED.filter((phase) => phase !== Phase.DELETED)) {
      expect(report(environment(from, Phase.DELETED), Phase.DELETED)?.status?.phase).toBe(Phase.DELETED);
      expect(() => report(environment(from, Phase.STOPPED), Phase.DELETED)).toThrow(
        "nobody has asked to delete",
      );
    }
    expect(() => report(environment(Phase.DELETED, Phase.DELETED), Phase.DELETING)).toThrow(
      "cannot change from",
    );
  });

  test("of a failure is kept once, with the ten newest", () => {
    let present = environment(Phase.CREATING);
    for (const message of ["a", "a", ..."bcdefghijk"])
      present = report(present, Phase.UNSPECIFIED, message) ?? present;
    expect(present.status?.failureMessage).toEqual([..."bcdefghijk"]);
    expect(present.status?.statusVersion).toBe(13n);
    expect(report(present, Phase.STARTING)?.status?.failureMessage).toHaveLength(10);
    expect(report(present, Phase.RUNNING)?.status?.failureMessage).toEqual([]);
  });
});

describe("a runner has something to do", () => {
  test.each([
    [Phase.CREATING, Phase.RUNNING, {}, true],
    [Phase.STOPPED, Phase.RUNNING, {}, true],
    [Phase.RUNNING, Phase.RUNNING, {}, false],
    [Phase.RUNNING, Phase.STOPPED, {}, true],
    [Phase.STOPPED, Phase.STOPPED, {}, false],
    [Phase.STOPPED, Phase.DELETED, {}, true],
    [Phase.DELETED, Phase.DELETED, {}, false],
    [Phase.CREATING, Phase.RUNNING, { workflowActionId: "a" }, false],
    [Phase.RUNNING, Phase.STOPPED, { workflowActionId: "a" }, false],
    [Phase.DELETING, Phase.DELETED, { workflowActionId: "a" }, true],
  ])("for an environment in phase %i that is wanted in %i with %j: %p", (phase, desired, more, expected) => {
    expect(needsWork(environment(phase, desired, more))).toBe(expected);
  });

  test("for one wanted stopped only when a runner ever had it", () => {
    const untouched = environment(Phase.CREATING, Phase.STOPPED);
    if (untouched.status) untouched.status.statusVersion = 1n;
    expect(needsWork(untouched)).toBe(false);
    expect(needsWork(assignedEnvironment(untouched, "r"))).toBe(true);
  });
});

test("an environment is bound with its lease, brought about, failed or abandoned", () => {
  expect(assignedEnvironment(environment(Phase.CREATING), "r")).toMatchObject({
    metadata: { runnerId: "r" },
    status: { statusVersion: 3n },
  });
  expect(completedEnvironment(environment(Phase.CREATING)).status?.phase).toBe(Phase.RUNNING);
  const running = environment(Phase.RUNNING);
  expect(completedEnvironment(running)).toBe(running);
  expect(failedEnvironment(environment(Phase.STARTING), "no disk")).toMatchObject({
    spec: { desiredPhase: Phase.STOPPED, specVersion: 2n },
    status: { phase: Phase.STOPPED, failureMessage: ["no disk"] },
  });
  expect(orphanedEnvironment(environment(Phase.RUNNING))).toMatchObject({
    spec: { desiredPhase: Phase.DELETED, specVersion: 2n },
    status: { phase: Phase.DELETING },
  });
});
