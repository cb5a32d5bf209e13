import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import {
  type ReportAgentRequest_Interest as Interest,
  ReportAgentRequest_InterestSchema as InterestSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import {
  type Environment,
  EnvironmentSchema,
  EnvironmentPhase as Phase,
} from "#gen/service/v1/environment_pb.js";
import { endedWaits, interestRow, newWaitingInfo, remainingWaitingInfo } from "./agent-interest.ts";

const NOW = 1_000_000;
const interest = (id: string, value: Interest["interest"]): Interest =>
  create(InterestSchema, { id, interest: value });
const TIMER = interest("timer", { case: "timer", value: { seconds: 90n, nanos: 500_000_000 } as never });
const SUBAGENT = interest("sub", { case: "subAgentId", value: "run" });
const MESSAGE = interest("word", { case: "userMessage", value: true });
const ENVIRONMENT = interest("place", {
  case: "environment",
  value: { environmentId: "env", phase: "running" } as never,
});

describe("what a run waits for", () => {
  test("is shown in the words of its status", () => {
    expect(newWaitingInfo("wait", [TIMER, SUBAGENT, MESSAGE, ENVIRONMENT], NOW)).toMatchObject({
      waitId: "wait",
      waitingSince: timestampFromMs(NOW),
      interests: [
        {
          id: "timer",
          interest: { value: { duration: "90.5s", cron: "", firesAt: timestampFromMs(NOW + 90_500) } },
        },
        { id: "sub", interest: { case: "subAgent", value: { executionId: "run" } } },
        { id: "word", interest: { case: "userMessage" } },
        { id: "place", interest: { case: "environment", value: { environmentId: "env", phase: "running" } } },
      ],
    });
    expect(newWaitingInfo("wait", [], NOW)).toBeUndefined();
  });

  test("is found again by what ends the wait", () => {
    const none = {
      fires_at: null,
      sub_agent_id: null,
      user_message: 0,
      environment_id: null,
      environment_phase: null,
    };
    expect([TIMER, SUBAGENT, MESSAGE, ENVIRONMENT].map((each) => interestRow(each, NOW))).toEqual([
      { ...none, interest_id: "timer", fires_at: NOW + 90_500 },
      { ...none, interest_id: "sub", sub_agent_id: "run" },
      { ...none, interest_id: "word", user_message: 1 },
      { ...none, interest_id: "place", environment_id: "env", environment_phase: "running" },
    ]);
  });

  test("grows less with each interest that fires, until nothing is left", () => {
    const all = newWaitingInfo("wait", [SUBAGENT, MESSAGE], NOW);
    const one = remainingWaitingInfo(all, ["sub"]);
    expect(one).toMatchObject({ waitId: "wait", interests: [{ id: "word" }] });
    expect(remainingWaitingInfo(one, ["word"])).toBeUndefined();
    expect(remainingWaitingInfo(undefined, ["word"])).toBeUndefined();
  });
});

describe("a change of an environment", () => {
  const environment = (
    phase: Phase,
    desiredPhase = Phase.RUNNING,
    failureMessage: string[] = [],
  ): Environment => create(EnvironmentSchema, { spec: { desiredPhase }, status: { phase, failureMessage } });
  const ended = (phase: string, ...failureMessages: string[]) => ({ phase, failureMessages });

  test.each([
    ["on the way to a phase", Phase.CREATING, Phase.STARTING, []],
    ["to running", Phase.STARTING, Phase.RUNNING, [ended("running")]],
    ["that leaves it running", Phase.RUNNING, Phase.RUNNING, []],
    ["to stopped", Phase.STOPPING, Phase.STOPPED, [ended("stopped")]],
    ["that comes back from an update", Phase.UPDATING, Phase.RUNNING, [ended("running")]],
  ])("%s ends the waits for that", (_, from, to, waits) => {
    expect(endedWaits(environment(from), environment(to))).toEqual(waits);
  });

  test("that it failed in ends the wait for it to run, with why", () => {
    const failed = environment(Phase.STOPPED, Phase.STOPPED, ["the disk is full"]);
    expect(endedWaits(environment(Phase.CREATING), failed)).toEqual([
      ended("stopped"),
      ended("running", "the disk is full"),
    ]);
    // An environment that was stopped on purpose, whatever went wrong before, may be started again.
    expect(endedWaits(environment(Phase.STOPPING, Phase.STOPPED), failed)).toEqual([ended("stopped")]);
  });

  test("to its removal ends every wait", () => {
    const waits = [
      ended("deleted"),
      ended("running", "the environment was deleted"),
      ended("stopped", "the environment was deleted"),
    ];
    expect(endedWaits(environment(Phase.RUNNING), undefined)).toEqual(waits);
    expect(endedWaits(environment(Phase.DELETING), environment(Phase.DELETED))).toEqual(waits);
    expect(endedWaits(environment(Phase.DELETED), undefined)).toEqual([]);
  });
});
