import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { EnvironmentSchema, EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import { canRunAgents, unavailableReason } from "./agent-environment.ts";

const environment = (phase: Phase, desiredPhase = Phase.RUNNING, failureMessage: string[] = []) =>
  create(EnvironmentSchema, { spec: { desiredPhase }, status: { phase, failureMessage } });
const up = environment(Phase.RUNNING);

test("agents begin where an environment runs and is meant to", () => {
  expect(canRunAgents(up)).toBe(true);
  for (const phase of [Phase.CREATING, Phase.STARTING, Phase.UPDATING, Phase.STOPPING, Phase.STOPPED]) {
    expect(canRunAgents(environment(phase))).toBe(false);
  }
  expect(canRunAgents(environment(Phase.RUNNING, Phase.STOPPED))).toBe(false);
});

describe("agents go on", () => {
  test("while an environment comes up, and while it is updated", () => {
    expect(unavailableReason(environment(Phase.CREATING), environment(Phase.STARTING))).toBeUndefined();
    expect(unavailableReason(environment(Phase.STOPPED), environment(Phase.STARTING))).toBeUndefined();
    expect(unavailableReason(environment(Phase.STARTING), environment(Phase.STOPPED))).toBeUndefined();
    expect(unavailableReason(up, environment(Phase.UPDATING))).toBeUndefined();
    expect(unavailableReason(environment(Phase.UPDATING), up)).toBeUndefined();
  });
});

describe("agents stop", () => {
  test.each([
    ["removed", undefined, "its environment was removed"],
    ["wanted deleted", environment(Phase.RUNNING, Phase.DELETED), "its environment was deleted"],
    ["wanted stopped", environment(Phase.RUNNING, Phase.STOPPED), "its environment was stopped"],
    ["going down", environment(Phase.STOPPING), "its environment went down"],
    ["down", environment(Phase.STOPPED, Phase.RUNNING, ["no disk"]), "its environment went down: no disk"],
  ])("with an environment that is %s", (_, after, message) => {
    expect(unavailableReason(up, after)).toBe(message);
  });

  test("with one that could not be brought up, for the reason that it gave", () => {
    const failed = environment(Phase.STOPPED, Phase.STOPPED, ["first", "no such branch"]);
    const before = environment(Phase.CREATING, Phase.RUNNING, ["first"]);
    expect(unavailableReason(before, failed)).toBe("its environment failed: no such branch");
    expect(
      unavailableReason(
        environment(Phase.RUNNING, Phase.RUNNING, ["first"]),
        environment(Phase.RUNNING, Phase.STOPPED, ["first"]),
      ),
    ).toBe("its environment was stopped");
  });
});
