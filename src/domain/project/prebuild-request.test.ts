import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { PrebuildPhase as Phase } from "#gen/service/v1/prebuild_pb.js";
import type { Prebuild, PrebuildState } from "./prebuild.ts";
import { phaseOf, prebuildMessage, statesOf } from "./prebuild-message.ts";
import { needsCancelling, requireNoneUnfinished, requirePrebuildsKnown } from "./prebuild-request.ts";

const STATES: readonly PrebuildState[] = [
  "waiting",
  "running",
  "ready",
  "failing",
  "failed",
  "cancelling",
  "cancelled",
  "removing",
];
const inState = (state: PrebuildState): Prebuild => ({
  id: "p",
  projectId: "q",
  environmentClassId: "c",
  runnerId: "r",
  executor: create(SubjectSchema),
  instantMs: 0,
  createdAtMs: 0,
  updatedAtMs: 0,
  changes: 0,
  state,
  failure: "",
  warning: "",
});

describe("the phases of prebuilds", () => {
  test("are those of the states, one each", () => {
    const phases = STATES.map(phaseOf);
    expect(new Set(phases).size).toBe(STATES.length);
    expect(statesOf(phases)).toEqual(expect.arrayContaining([...STATES]));
    for (const state of STATES) expect(statesOf([phaseOf(state)])).toEqual([state]);
    expect(statesOf([Phase.UNSPECIFIED, Phase.STARTING, Phase.SNAPSHOTTING, Phase.DELETED])).toEqual([]);
  });

  test("follow what is wanted, whose version never falls", () => {
    const versions = (["running", "cancelling", "cancelled", "removing"] as const).map(
      (state) => prebuildMessage(inState(state), "o").spec?.specVersion,
    );
    expect(versions).toEqual([1n, 2n, 2n, 3n]);
  });
});

describe("what callers may ask of a prebuild", () => {
  test("is to cancel it while it waits or runs, and again once it is cancelled", () => {
    const outcomes = STATES.map((state) => {
      try {
        return [state, needsCancelling(inState(state))];
      } catch {
        return [state, "refused"];
      }
    });
    expect(Object.fromEntries(outcomes)).toEqual({
      waiting: true,
      running: true,
      ready: "refused",
      failing: "refused",
      failed: "refused",
      cancelling: false,
      cancelled: false,
      removing: "refused",
    });
  });

  test("is another one unless one waits or runs", () => {
    for (const state of ["waiting", "running"] as const) {
      expect(() => requireNoneUnfinished([inState("ready"), inState(state)])).toThrow("has not ended");
    }
    const ended = STATES.filter((state) => state !== "waiting" && state !== "running").map(inState);
    expect(() => requireNoneUnfinished(ended)).not.toThrow();
  });

  test("is nothing while servers of the release before run", () => {
    expect(() => requirePrebuildsKnown(true)).not.toThrow();
    expect(() => requirePrebuildsKnown(false)).toThrow("once every server runs this release");
  });
});
