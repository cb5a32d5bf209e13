import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { ReportAgentRequest_UsageSchema as UsageSchema } from "#gen/runner/v1/agent_work_service_pb.js";
import { AgentExecution_StatusSchema, AgentMode } from "#gen/service/v1/agent_pb.js";
import { applyProgress, initialProgress, tokensBetween, updatedProgress } from "./agent-progress.ts";

const first = initialProgress(AgentMode.EXECUTION);
const usage = create(UsageSchema, { iterations: 2n, inputTokens: 100n, contextWindowLength: 80n });

test("news of a run count as one change, and what they leave out stays", () => {
  const after = updatedProgress(first, { usage, currentActivity: "reads" });
  expect(after).toEqual({ ...first, changes: 1, usage, mode: AgentMode.EXECUTION, currentActivity: "reads" });
  const next = after && updatedProgress(after, { mode: AgentMode.PLANNING });
  expect(next).toEqual({ ...first, changes: 2, usage, mode: AgentMode.PLANNING, currentActivity: "reads" });
});

test("what is known already is no change", () => {
  const after = updatedProgress(first, { usage, mode: AgentMode.EXECUTION });
  expect(
    after && updatedProgress(after, { usage, mode: AgentMode.EXECUTION, currentActivity: "" }),
  ).toBeUndefined();
  expect(updatedProgress(first, {})).toBeUndefined();
});

test("used tokens never fall, the context may", () => {
  const after = updatedProgress(first, { usage });
  const reported = create(UsageSchema, { iterations: 1n, inputTokens: 101n, contextWindowLength: 10n });
  expect(after && updatedProgress(after, { usage: reported })?.usage).toMatchObject({
    iterations: 2n,
    inputTokens: 101n,
    contextWindowLength: 10n,
  });
});

test("tokens between two states are those read and those written", () => {
  const after = updatedProgress(first, { usage: create(UsageSchema, { inputTokens: 7n, outputTokens: 2n }) });
  expect(after && tokensBetween(first, after)).toBe(9);
});

test("a goal is shown with what was used for it", () => {
  const status = create(AgentExecution_StatusSchema, { goal: { objective: "ship" } });
  applyProgress(status, { ...first, goalUse: { tokens: 9, timeMs: 1_500, turn: null } });
  expect(status.goal).toMatchObject({ tokensUsed: 9n, timeUsed: { seconds: 1n, nanos: 500_000_000 } });
});
