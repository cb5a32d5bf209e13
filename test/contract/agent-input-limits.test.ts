import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  GetStepAgentRequestSchema as GetStep,
  ReportAgentRequestSchema as Report,
  StartStepAgentRequestSchema as StartStep,
  StartSubagentRequestSchema as StartSubagent,
  StreamInputsRequestSchema as Stream,
} from "#gen/runner/v1/agent_work_service_pb.js";
import {
  ListAgentInputsRequestSchema as ListInputs,
  ListAgentOutputBlocksRequestSchema as ListOutput,
  SendToAgentExecutionRequestSchema as Send,
  WatchAgentExecutionRequestSchema as Watch,
} from "#gen/service/v1/agent_service_pb.js";
import { brief, complaint, ID, lists, texts, withValue } from "./limit.ts";

type Limit = readonly [path: string, passes: readonly JsonValue[], fails: readonly JsonValue[]];

const ids: Limit[1] = [ID];
const noIds: Limit[2] = ["", "x", `${ID}0`];
const TEXT = { text: { content: "x" } };
const BLOCK = { sequence: "1", text: { content: "x" } };
const INTEREST = { id: "i", timer: "60s" };

/** Requests that are valid, into which the values are put; the name tells those of one message apart. */
const VALID: Readonly<Record<string, readonly [DescMessage, JsonObject]>> = {
  message: [Send, { agentExecutionId: ID, userInput: { inputs: [TEXT] } }],
  image: [
    Send,
    { agentExecutionId: ID, userInput: { inputs: [{ image: { data: "AA==", mimeType: "image/png" } }] } },
  ],
  agentMessage: [Send, { agentExecutionId: ID, agentMessage: {} }],
  loop: [Send, { agentExecutionId: ID, wakeEvent: { loopRetrigger: { unmetConditions: [{}] } } }],
  environmentWake: [Send, { agentExecutionId: ID, wakeEvent: { environment: {} } }],
  rebuild: [Send, { agentExecutionId: ID, wakeEvent: { devcontainerRebuild: {} } }],
  subagentWake: [Send, { agentExecutionId: ID, wakeEvent: { subAgent: {} } }],
  goal: [Send, { agentExecutionId: ID, controlInput: { goal: { set: { objective: "x" } } } }],
  deletion: [Send, { agentExecutionId: ID, controlInput: { deleteQueuedMessage: { userInputId: "x" } } }],
  steering: [Send, { agentExecutionId: ID, controlInput: { steerQueuedMessage: { userInputId: "x" } } }],
  move: [Send, { agentExecutionId: ID, controlInput: { moveQueuedMessage: { userInputId: "x" } } }],
  list: [ListInputs, { agentExecutionId: ID }],
  stream: [Stream, { leaseId: ID, fence: "1" }],
  report: [Report, { leaseId: ID, fence: "1", blocks: [BLOCK], interests: [INTEREST], usage: {} }],
  fileChange: [Report, { leaseId: ID, fence: "1", blocks: [{ fileChange: {} }] }],
  toolRequest: [Report, { leaseId: ID, fence: "1", blocks: [{ toolRequest: {} }] }],
  error: [Report, { leaseId: ID, fence: "1", blocks: [{ error: {} }] }],
  toolCall: [
    Report,
    { leaseId: ID, fence: "1", blocks: [{ toolCall: { id: "c", locations: [{}], diffs: [{}] } }] },
  ],
  plan: [Report, { leaseId: ID, fence: "1", blocks: [{ plan: { entries: [{}] } }] }],
  thought: [Report, { leaseId: ID, fence: "1", blocks: [{ thought: {} }] }],
  question: [Report, { leaseId: ID, fence: "1", blocks: [{ question: { id: "q" } }] }],
  usage: [Report, { leaseId: ID, fence: "1", blocks: [{ usage: { cost: { currency: "EUR" } } }] }],
  output: [ListOutput, { agentExecutionId: ID }],
  watch: [Watch, { agentExecutionId: ID }],
  subagentInterest: [Report, { leaseId: ID, fence: "1", interests: [{ id: "i", subAgentId: ID }] }],
  environmentInterest: [
    Report,
    { leaseId: ID, fence: "1", interests: [{ id: "i", environment: { environmentId: ID } }] },
  ],
  subagent: [StartSubagent, { leaseId: ID, fence: "1", prompt: "x" }],
  step: [StartStep, { leaseId: ID, fence: "1" }],
  stepState: [GetStep, { leaseId: ID, fence: "1", agentExecutionId: ID }],
};

const LEASE: readonly Limit[] = [
  ["leaseId", ids, noIds],
  ["fence", ["1", "2"], ["0", "-1"]],
];
const failures = (path: string): Limit => [
  path,
  [...lists("x", 0, 9, 10), texts(2_047, 2_048)],
  [...lists("x", 11), texts(2_049).slice(0, 1)],
];

const LIMITS: Readonly<Record<string, readonly Limit[]>> = {
  message: [
    ["agentExecutionId", ids, noIds],
    ["userInput.id", texts(0, 127, 128), texts(129)],
    ["userInput.inputs[0].text.content", texts(1, 99_999, 100_000), texts(0, 100_001)],
    ["userInput.metadata.source", texts(0, 252, 253), texts(254)],
    ["extAgentSettings.model", [0, 10], [11]],
    ["extAgentSettings.reasoningEffort", [0, 6], [7]],
    ["extAgentSettings.serviceTier", [0, 1], [2]],
    ["expectedQueueRevision", ["0", "1"], ["-1"]],
  ],
  image: [["userInput.inputs[0].image.dataRef", texts(0, 1_023, 1_024), texts(1_025)]],
  agentMessage: [
    ["agentMessage.type", [0, 2], [3]],
    ["agentMessage.payload", texts(0, 65_535, 65_536), texts(65_537)],
    ["agentMessage.role", [0, 2], [3]],
    ["agentMessage.senderExecutionId", texts(0, 127, 128), texts(129)],
  ],
  loop: [
    ["wakeEvent.interestId", texts(0, 127, 128), texts(129)],
    ["wakeEvent.loopRetrigger.unmetConditions", lists({}, 0, 49, 50), lists({}, 51)],
    ["wakeEvent.loopRetrigger.unmetConditions[0].id", texts(0, 128), texts(129)],
    ["wakeEvent.loopRetrigger.unmetConditions[0].expression", texts(0, 4_096), texts(4_097)],
    ["wakeEvent.loopRetrigger.unmetConditions[0].description", texts(0, 1_024), texts(1_025)],
    ["wakeEvent.loopRetrigger.unmetConditions[0].reason", texts(0, 1_024), texts(1_025)],
  ],
  environmentWake: [
    ["wakeEvent.environment.environmentId", texts(0, 128), texts(129)],
    ["wakeEvent.environment.phase", texts(0, 64), texts(65)],
    failures("wakeEvent.environment.failureMessage"),
  ],
  rebuild: [
    ["wakeEvent.devcontainerRebuild.environmentId", texts(0, 128), texts(129)],
    ["wakeEvent.devcontainerRebuild.phase", texts(0, 64), texts(65)],
    ["wakeEvent.devcontainerRebuild.sessionId", texts(0, 128), texts(129)],
    failures("wakeEvent.devcontainerRebuild.failureMessage"),
  ],
  subagentWake: [
    ["wakeEvent.subAgent.executionId", texts(0, 128), texts(129)],
    ["wakeEvent.subAgent.failureMessage", texts(0, 4_095, 4_096), texts(4_097)],
  ],
  goal: [
    ["controlInput.goal.set.objective", texts(1, 19_999, 20_000), texts(0, 20_001)],
    ["controlInput.goal.set.status", [0, 6], [7]],
  ],
  deletion: [["controlInput.deleteQueuedMessage.userInputId", texts(1, 127, 128), texts(0, 129)]],
  steering: [["controlInput.steerQueuedMessage.userInputId", texts(1, 127, 128), texts(0, 129)]],
  move: [
    ["controlInput.moveQueuedMessage.userInputId", texts(1, 127, 128), texts(0, 129)],
    ["controlInput.moveQueuedMessage.beforeUserInputId", texts(0, 127, 128), texts(129)],
  ],
  watch: [
    ["agentExecutionId", ids, noIds],
    ["afterSequence", ["0", "1"], ["-1"]],
    ["view", [0, 2], [3]],
  ],
  list: [
    ["agentExecutionId", ids, noIds],
    ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]],
  ],
  stream: LEASE,
  report: [
    ...LEASE,
    ["seenInputIds", [...lists("x", 0, 63, 64), texts(1, 127, 128)], [...lists("x", 65), [""], texts(129)]],
    ["blocks", lists(BLOCK, 0, 63, 64), lists(BLOCK, 65)],
    ["blocks[0].inputId", texts(0, 127, 128), texts(129)],
    ["blocks[0].text.content", texts(0, 65_535, 65_536), texts(65_537)],
    ["state", [0, 2], [3]],
    ["interests", lists(INTEREST, 0, 15, 16), lists(INTEREST, 17)],
    ["interests[0].id", texts(1, 127, 128), texts(0, 129)],
    ["interests[0].timer", ["1s", "2s", "2591999s", "2592000s"], ["0s", "0.999s", "2592000.001s", "-1s"]],
    ["goalStatus", [0, 6], [7]],
    ["mode", [0, 5], [6]],
    ["currentActivity", texts(0, 255, 256), texts(257)],
    ...["iterations", "inputTokens", "outputTokens", "contextWindowLength"].map(
      (name): Limit => [`usage.${name}`, ["0", "1"], ["-1"]],
    ),
    ...["cachedCreationTokens", "cachedInputTokens", "contextWindowLimit"].map(
      (name): Limit => [`usage.${name}`, ["0", "1"], ["-1"]],
    ),
  ],
  fileChange: [
    ["blocks[0].fileChange.path", texts(0, 1_023, 1_024), texts(1_025)],
    ["blocks[0].fileChange.kind", [0, 3], [4]],
    ["blocks[0].fileChange.diff", texts(0, 65_536), texts(65_537)],
  ],
  toolRequest: [
    ["blocks[0].toolRequest.name", texts(0, 255, 256), texts(257)],
    ["blocks[0].toolRequest.arguments", texts(0, 65_536), texts(65_537)],
    ["blocks[0].toolRequest.id", texts(0, 127, 128), texts(129)],
  ],
  error: [["blocks[0].error.message", texts(0, 4_095, 4_096), texts(4_097)]],
  toolCall: [
    ["blocks[0].toolCall.id", texts(1, 127, 128), texts(0, 129)],
    ["blocks[0].toolCall.title", texts(0, 1_023, 1_024), texts(1_025)],
    ["blocks[0].toolCall.kind", [0, 9], [10]],
    ["blocks[0].toolCall.state", [0, 5], [6]],
    ["blocks[0].toolCall.locations", lists({}, 0, 31, 32), lists({}, 33)],
    ["blocks[0].toolCall.locations[0].path", texts(0, 1_023, 1_024), texts(1_025)],
    ["blocks[0].toolCall.locations[0].line", [0, 1], [-1]],
    ["blocks[0].toolCall.input", texts(0, 65_535, 65_536), texts(65_537)],
    ["blocks[0].toolCall.result", texts(0, 65_535, 65_536), texts(65_537)],
    ["blocks[0].toolCall.diffs", lists({}, 0, 7, 8), lists({}, 9)],
    ["blocks[0].toolCall.diffs[0].path", texts(0, 1_023, 1_024), texts(1_025)],
    ["blocks[0].toolCall.diffs[0].kind", [0, 3], [4]],
    ["blocks[0].toolCall.diffs[0].diff", texts(0, 32_767, 32_768), texts(32_769)],
  ],
  plan: [
    ["blocks[0].plan.entries", lists({}, 0, 63, 64), lists({}, 65)],
    ["blocks[0].plan.entries[0].content", texts(0, 1_023, 1_024), texts(1_025)],
    ["blocks[0].plan.entries[0].state", [0, 3], [4]],
    ["blocks[0].plan.entries[0].priority", [0, 3], [4]],
  ],
  thought: [["blocks[0].thought.content", texts(0, 65_535, 65_536), texts(65_537)]],
  question: [
    ["blocks[0].question.id", texts(1, 127, 128), texts(0, 129)],
    ["blocks[0].question.message", texts(0, 4_095, 4_096), texts(4_097)],
    ["blocks[0].question.schema", texts(0, 16_383, 16_384), texts(16_385)],
    ["blocks[0].question.state", [0, 3], [4]],
  ],
  usage: [
    ...[
      "inputTokens",
      "outputTokens",
      "thoughtTokens",
      "cachedCreationTokens",
      "cachedInputTokens",
      "contextUsed",
      "contextSize",
    ].map((name): Limit => [`blocks[0].usage.${name}`, ["0", "1"], ["-1"]]),
    ["blocks[0].usage.cost.amount", [0, 0.000001, 1e12], [-0.01, "NaN", "Infinity"]],
    ["blocks[0].usage.cost.currency", ["EUR"], ["", "EU", "EURO", "eur"]],
  ],
  output: [
    ["agentExecutionId", ids, noIds],
    ["view", [0, 2], [3]],
    ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]],
  ],
  subagentInterest: [["interests[0].subAgentId", ids, noIds]],
  environmentInterest: [
    ["interests[0].environment.environmentId", ids, noIds],
    ["interests[0].environment.phase", ["", "running", "stopped", "deleted"], ["updating", "RUNNING"]],
  ],
  subagent: [
    ...LEASE,
    ["agentId", ["", ID], ["x"]],
    ["name", texts(0, 99, 100), texts(101)],
    ["prompt", texts(1, 99_999, 100_000), texts(0, 100_001)],
    ["key", texts(0, 127, 128), texts(129)],
  ],
  step: [...LEASE, ["stepIndex", [0, 1, 48, 49], [-1, 50]], ["outputKey", texts(0, 49, 50), texts(51)]],
  stepState: [...LEASE, ["agentExecutionId", ids, noIds]],
};

const rows = Object.entries(LIMITS).flatMap(([name, limits]) =>
  limits.map((limit) => [name, ...limit] as const),
);
const tell = (name: string, path: string, value: JsonValue) => {
  const [schema, request] = VALID[name] ?? [];
  if (!schema || !request) throw new Error(`there is no valid request ${name}`);
  return complaint(schema, withValue(request, path, value));
};

describe("inputs of agent runs, and reports on them, within a limit", () => {
  const cases = rows.flatMap(([name, path, passes]) =>
    passes.map((value) => [name, path, brief(value), value] as const),
  );
  test.each(cases)("%s: %s takes %s", (name, path, _, value) => {
    expect(tell(name, path, value)).toBeUndefined();
  });
});

describe("inputs of agent runs, and reports on them, past a limit", () => {
  const cases = rows.flatMap(([name, path, , fails]) =>
    fails.map((value) => [name, path, brief(value), value] as const),
  );
  test.each(cases)("%s: %s does not take %s", (name, path, _, value) => {
    expect(tell(name, path, value)).toContain(` [${path}`);
  });
});

test.each(["input", "userInput.inputs[0].input", "wakeEvent.payload", "controlInput.control"])(
  "one of %s must be set",
  (path) => {
    const empty: Readonly<Record<string, JsonObject>> = {
      input: {},
      "userInput.inputs[0].input": { userInput: { inputs: [{}] } },
      "wakeEvent.payload": { wakeEvent: { interestId: "i" } },
      "controlInput.control": { controlInput: {} },
    };
    expect(complaint(Send, { agentExecutionId: ID, ...empty[path] })).toContain(path);
  },
);

test("a message is of one kind, the deprecated ones among them, and not empty", () => {
  const say = (userInput: JsonObject) => complaint(Send, { agentExecutionId: ID, userInput });
  expect(say(TEXT)).toBeUndefined();
  for (const userInput of [{}, { inputs: [] }, { ...TEXT, inputs: [TEXT] }]) {
    expect(say(userInput)).toContain("exactly one of text, image or inputs must be set and not empty");
  }
});
