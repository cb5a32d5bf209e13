import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import {
  ReportAgentRequest_InterestSchema,
  ReportAgentRequest_UsageSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import {
  AgentGoalStatus,
  AgentMessage_Type,
  AgentMode,
  AgentOutputBlock_FileChange_Kind as FileChangeKind,
  AgentForkAbility as ForkAbility,
} from "#gen/service/v1/agent_pb.js";
import { ApprovalOption_Kind as OptionKind, ToolKind } from "#gen/service/v1/approval_pb.js";
import { isJsonObject } from "../../domain/json-object.ts";
import { fileChangeBlock, textBlocks, thoughtBlocks, toolRequestBlock, truncate } from "./agent-block.ts";
import { parsePlan, parseQuestion, parseToolCall, parseUsage } from "./agent-block-parsing.ts";
import type { AgentUpdate, BlockContent, Interest } from "./agent-reporter.ts";
import type { ApprovalRequest } from "./approval-requests.ts";
import {
  InvalidAgentLine,
  parseContractMessage,
  parseEnumMember,
  requireId,
  requireObjects,
  requireText,
  textOrJson,
} from "./line-values.ts";

/** The agent's request to start a sub-agent. */
export interface SubagentRequest {
  /** The agent's own key for the request. */
  readonly key: string;
  readonly name: string;
  readonly prompt: string;
  /** The id of the agent to start; empty for the same agent. */
  readonly agentId: string;
}

/** A message from the agent to another execution. */
export interface OutgoingMessage {
  readonly to: string;
  readonly type: AgentMessage_Type;
  readonly payload: string;
}

/** The content of a line that an agent writes. */
export type AgentMessage =
  | { readonly kind: "seen"; readonly inputId: string }
  | { readonly kind: "answer"; readonly blocks: readonly BlockContent[] }
  /** An error. If the execution fails, `reason` becomes the reason of its failure. */
  | { readonly kind: "error"; readonly message: string; readonly reason: "model_unreachable" | undefined }
  /** The end of a turn. The execution then waits for its next input or for one of the interests. */
  | { readonly kind: "turn-done"; readonly interests: readonly Interest[] }
  | { readonly kind: "facts"; readonly facts: AgentUpdate }
  | { readonly kind: "subagent"; readonly request: SubagentRequest }
  | { readonly kind: "message"; readonly message: OutgoingMessage }
  /** A tool call that needs permission, or a question to a person. */
  | { readonly kind: "approval"; readonly request: ApprovalRequest };

/** The contract's maximum length of the agent's activity, in characters (ReportAgentRequest.current_activity). */
const MAX_ACTIVITY_CHARACTERS = 256;
/** The contract's maximum number of interests (ReportAgentRequest.interests). */
const MAX_INTERESTS = 16;

/**
 * Parses a line from an agent that speaks JSON lines, in the format of docs/agents.md.
 * Truncates texts that exceed the contract's limits.
 *
 * @param line the parsed JSON of the line
 * @throws InvalidAgentLine
 */
export function parseAgentMessage(line: JsonValue): AgentMessage {
  if (!isJsonObject(line)) throw new InvalidAgentLine("it is no JSON object");
  const { type } = line;
  const read = typeof type === "string" && Object.hasOwn(PARSERS, type) ? PARSERS[type] : undefined;
  if (!read) throw new InvalidAgentLine(`its type is ${JSON.stringify(type) ?? "missing"}`);
  return read(line);
}

const PARSERS: Readonly<Record<string, (line: JsonObject) => AgentMessage>> = {
  seen: (line) => ({ kind: "seen", inputId: requireText(line, "id") }),
  text: (line) => ({ kind: "answer", blocks: textBlocks(requireText(line, "content")) }),
  file_change: (line) => ({ kind: "answer", blocks: [fileChangeBlock(fileChange(line))] }),
  tool_request: (line) => ({ kind: "answer", blocks: [toolRequestBlock(toolRequest(line))] }),
  tool_call: (line) => ({ kind: "answer", blocks: [parseToolCall(line)] }),
  plan: (line) => ({ kind: "answer", blocks: [parsePlan(line)] }),
  thought: (line) => ({ kind: "answer", blocks: thoughtBlocks(requireText(line, "content")) }),
  question: (line) => ({ kind: "answer", blocks: [parseQuestion(line)] }),
  usage_update: (line) => ({ kind: "answer", blocks: [parseUsage(line)] }),
  error: (line) => ({ kind: "error", message: requireText(line, "message"), reason: reason(line) }),
  turn_done: () => ({ kind: "turn-done", interests: [] }),
  wait: (line) => ({ kind: "turn-done", interests: interests(line) }),
  usage: (line) => facts({ usage: parseContractMessage(ReportAgentRequest_UsageSchema, line, "usage") }),
  goal: (line) => facts({ goalStatus: parseEnumMember(AgentGoalStatus, line, "status") }),
  mode: (line) => facts({ mode: parseEnumMember(AgentMode, line, "mode") }),
  activity: (line) =>
    facts({ currentActivity: truncate(requireText(line, "text"), MAX_ACTIVITY_CHARACTERS) }),
  resumable: () => facts({ canResume: true }),
  forkable: () => facts({ forkAbility: ForkAbility.ANY_TURN }),
  subagent: (line) => ({ kind: "subagent", request: subagent(line) }),
  agent_message: (line) => ({ kind: "message", message: outgoingMessage(line) }),
  permission_request: (line) => ({ kind: "approval", request: parsePermissionRequest(line) }),
  answer_request: (line) => ({ kind: "approval", request: parseAnswerRequest(line) }),
};

/** The types of the lines that an agent may write. */
export const MESSAGE_TYPES: readonly string[] = Object.keys(PARSERS);

const facts = (update: AgentUpdate): AgentMessage => ({ kind: "facts", facts: update });

/** Returns the reason of an error. Ignores reasons that the format does not define, as it ignores unknown fields. */
function reason(line: JsonObject) {
  return line.reason === "model_unreachable" ? line.reason : undefined;
}

function fileChange(line: JsonObject) {
  const kind = parseEnumMember(FileChangeKind, line, "kind", FileChangeKind.UNSPECIFIED);
  return { path: requireText(line, "path"), kind, diff: requireText(line, "diff", "") };
}

function toolRequest(line: JsonObject) {
  const given = line.arguments ?? "";
  return {
    name: requireText(line, "name"),
    arguments: typeof given === "string" ? given : JSON.stringify(given),
    id: requireText(line, "id", ""),
  };
}

function subagent(line: JsonObject): SubagentRequest {
  const [key, prompt] = [requireText(line, "key"), requireText(line, "prompt")];
  if (key === "" || prompt === "") throw new InvalidAgentLine("its key or its prompt is empty");
  return { key, prompt, name: requireText(line, "name", ""), agentId: requireText(line, "agentId", "") };
}

function outgoingMessage(line: JsonObject): OutgoingMessage {
  const type = parseEnumMember(AgentMessage_Type, line, "kind", AgentMessage_Type.UNSPECIFIED);
  return { to: requireText(line, "to"), type, payload: requireText(line, "payload") };
}

function interests(line: JsonObject): Interest[] {
  const given = line.interests ?? [];
  if (!Array.isArray(given)) throw new InvalidAgentLine("its interests are no list");
  if (given.length > MAX_INTERESTS) throw new InvalidAgentLine(`it has more than ${MAX_INTERESTS} interests`);
  return given.map((each) => {
    const interest = parseContractMessage(ReportAgentRequest_InterestSchema, each, "interest");
    if (interest.id === "" || interest.interest.case === undefined) {
      throw new InvalidAgentLine("an interest lacks its id, or what is waited for");
    }
    return interest;
  });
}

/** Parses a line of the type `permission_request`. */
function parsePermissionRequest(line: JsonObject): ApprovalRequest {
  const value = {
    title: requireText(line, "title"),
    kind: parseEnumMember(ToolKind, line, "kind", ToolKind.OTHER),
    tool: requireText(line, "tool", ""),
    input: textOrJson(line.input),
    locations: texts(line, "locations"),
  };
  const options = requireObjects(line, "options").map((option) => ({
    id: requireText(option, "id"),
    name: requireText(option, "name", ""),
    kind: parseEnumMember(OptionKind, option, "kind"),
  }));
  return { toolCallId: requireId(line), request: { case: "toolCall", value }, options };
}

/** Parses a line of the type `answer_request`. */
function parseAnswerRequest(line: JsonObject): ApprovalRequest {
  const value = { message: requireText(line, "message"), schemaJson: textOrJson(line.schema) };
  return { toolCallId: requireId(line), request: { case: "question", value } };
}

function texts(line: JsonObject, name: string): string[] {
  const value = line[name] ?? [];
  if (!Array.isArray(value)) throw new InvalidAgentLine(`its ${name} are no list`);
  return value.map((each) => {
    if (typeof each !== "string") throw new InvalidAgentLine(`its ${name} are no list of texts`);
    return each.toWellFormed();
  });
}
