import { expect, test } from "@jest/globals";
import { AgentExecutionFailureReason as Reason } from "#gen/service/v1/agent_pb.js";
import { failureOfAgent } from "./agent-failure.ts";

test.each([
  ["environment_failed", Reason.ENVIRONMENT],
  ["model_unreachable", Reason.LLM_INTEGRATION],
  ["agent_interrupted", Reason.SERVICE],
  ["runner_fault", Reason.SERVICE],
  ["agent_failed", Reason.AGENT_EXECUTION],
  ["constructor", Reason.AGENT_EXECUTION],
  ["", Reason.AGENT_EXECUTION],
])("a runner that says %j tells of a failure of its own kind", (reason, expected) => {
  expect(failureOfAgent({ reason, message: "so it was" })).toEqual({
    reason: expected,
    message: "so it was",
  });
});

test("a runner that says nothing leaves no failure without words", () => {
  expect(failureOfAgent(undefined).message).toBe("the agent failed; the runner gave no reason");
  expect(failureOfAgent({ reason: "x", message: "" }).message).toBe(
    "the agent failed; the runner gave no reason",
  );
});
