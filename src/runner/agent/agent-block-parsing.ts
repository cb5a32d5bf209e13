import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import {
  AgentOutputBlock_FileChange_Kind as FileChangeKind,
  AgentOutputBlock_Plan_Priority as Priority,
  AgentOutputBlock_Question_State as QuestionState,
  AgentOutputBlock_Plan_State as StepState,
  AgentOutputBlock_ToolCall_Kind as ToolKind,
  AgentOutputBlock_ToolCall_State as ToolState,
  AgentOutputBlock_UsageSchema as UsageSchema,
} from "#gen/service/v1/agent_pb.js";
import { planBlock, questionBlock, toolCallBlock, usageBlock } from "./agent-block.ts";
import type { BlockContent } from "./agent-reporter.ts";
import {
  InvalidAgentLine,
  parseContractMessage,
  parseEnumMember,
  requireId,
  requireObjects,
  requireText,
  textOrJson,
} from "./line-values.ts";

/** Parses a line of the type `tool_call`. */
export function parseToolCall(line: JsonObject): BlockContent {
  return toolCallBlock({
    id: requireId(line),
    title: requireText(line, "title", ""),
    kind: parseEnumMember(ToolKind, line, "kind", ToolKind.UNSPECIFIED),
    state: parseEnumMember(ToolState, line, "state", ToolState.UNSPECIFIED),
    locations: requireObjects(line, "locations").map((location) => ({
      path: requireText(location, "path"),
      line: lineNumber(location.line),
    })),
    input: textOrJson(line.input),
    result: textOrJson(line.result),
    diffs: requireObjects(line, "diffs").map((diff) => ({
      path: requireText(diff, "path"),
      kind: parseEnumMember(FileChangeKind, diff, "kind", FileChangeKind.UNSPECIFIED),
      diff: requireText(diff, "diff"),
    })),
  });
}

/** Parses a line of the type `plan`. */
export function parsePlan(line: JsonObject): BlockContent {
  const entries = requireObjects(line, "entries").map((entry) => ({
    content: requireText(entry, "content"),
    state: parseEnumMember(StepState, entry, "state", StepState.UNSPECIFIED),
    priority: parseEnumMember(Priority, entry, "priority", Priority.UNSPECIFIED),
  }));
  return planBlock({ entries });
}

/** Parses a line of the type `question`. */
export function parseQuestion(line: JsonObject): BlockContent {
  return questionBlock({
    id: requireId(line),
    message: requireText(line, "message", ""),
    schema: textOrJson(line.schema),
    state: parseEnumMember(QuestionState, line, "state", QuestionState.OPEN),
  });
}

/** Parses a line of the type `usage_update`. */
export function parseUsage(line: JsonObject): BlockContent {
  const usage = parseContractMessage(UsageSchema, line, "usage");
  const { cost, $typeName, ...tokens } = usage;
  if (Object.values(tokens).some((count) => typeof count === "bigint" && count < 0n))
    throw new InvalidAgentLine("its usage has a number below 0");
  if (cost && !(cost.amount >= 0 && Number.isFinite(cost.amount) && /^[A-Z]{3}$/.test(cost.currency)))
    throw new InvalidAgentLine("its cost is no amount of a currency of three capital letters");
  return usageBlock(usage);
}

function lineNumber(value: JsonValue | undefined): number {
  if (value === undefined) return 0;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > 0x7fffffff)
    throw new InvalidAgentLine("a line of its locations is no number from 0");
  return value;
}
