import { describe, expect, test } from "@jest/globals";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { AGENT_TRANSITIONS, isFinalAgentPhase, transitionAgentPhase } from "./agent-transitions.ts";

const PHASES = [Phase.PENDING, Phase.RUNNING, Phase.WAITING_FOR_INPUT, Phase.STOPPED];

describe("the moves of a run", () => {
  test("lead from PENDING to every phase there is", () => {
    const reached = new Set([Phase.PENDING]);
    for (let size = 0; size < reached.size; ) {
      size = reached.size;
      for (const [from, , to] of AGENT_TRANSITIONS) if (reached.has(from)) reached.add(to);
    }
    expect([...reached].toSorted()).toEqual(PHASES.toSorted());
  });

  test("say of each phase and event at most one thing, and change the phase", () => {
    const keys = AGENT_TRANSITIONS.map(([from, event]) => `${from} ${event}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(AGENT_TRANSITIONS.filter(([from, , to]) => from === to)).toEqual([]);
  });

  test("stop a run in whatever phase, and nothing follows", () => {
    for (const phase of PHASES.filter((each) => each !== Phase.STOPPED)) {
      expect(transitionAgentPhase(phase, "stop")).toBe(Phase.STOPPED);
      expect(transitionAgentPhase(phase, "fail")).toBe(Phase.STOPPED);
      expect(isFinalAgentPhase(phase)).toBe(false);
    }
    expect(isFinalAgentPhase(Phase.STOPPED)).toBe(true);
  });
});

test("a move that is not in the table is refused with the phase", () => {
  expect(() => transitionAgentPhase(Phase.STOPPED, "begin")).toThrow(
    expect.objectContaining({ metadata: { resource: "agent execution", phase: "STOPPED" } }),
  );
  expect(() => transitionAgentPhase(Phase.PENDING, "end")).toThrow(
    'the event "end" is not allowed while the agent run is PENDING',
  );
  expect(() => transitionAgentPhase(Phase.WAITING_FOR_INPUT, "lose")).toThrow(
    'the event "lose" is not allowed',
  );
});
