import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
} from "@bufbuild/protobuf";
import {
  ReportAgentRequest_InterestSchema,
  ReportAgentRequest_UsageSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import {
  AgentGoalStatus,
  AgentMessage_Type,
  AgentMode,
  AgentOutputBlock_FileChange_Kind as FileChangeKind,
} from "#gen/service/v1/agent_pb.js";
import { cut, fileChangeBlock, textBlocks, toolRequestBlock } from "./agent-block.ts";
import type { AgentFacts, BlockContent, Interest } from "./agent-report.ts";

/** A sub-agent that the agent wants. */
export interface SubagentRequest {
  /** The agent's own word for it. */
  readonly key: string;
  readonly name: string;
  readonly prompt: string;
  /** Empty: the same agent. */
  readonly agentId: string;
}

/** What the agent says to another run. */
export interface RunMessage {
  readonly to: string;
  readonly type: AgentMessage_Type;
  readonly payload: string;
}

/** What a line of an agent says. */
export type AgentMessage =
  | { readonly kind: "seen"; readonly inputId: string }
  | { readonly kind: "answer"; readonly blocks: readonly BlockContent[] }
  /** What went wrong; `reason` is a word of its own for a failure of the run, should it come to that. */
  | { readonly kind: "error"; readonly message: string; readonly reason: "model_unreachable" | undefined }
  /** The turn is over; the run waits for its next input, and for the interests. */
  | { readonly kind: "turn-done"; readonly interests: readonly Interest[] }
  | { readonly kind: "facts"; readonly facts: AgentFacts }
  | { readonly kind: "subagent"; readonly wish: SubagentRequest }
  | { readonly kind: "message"; readonly message: RunMessage };

/** A line that is none of the form; the message says why. */
export class UnreadableMessage extends Error {
  override readonly name = "UnreadableMessage";
}

/** Characters that the contract takes of what the agent does (ReportAgentRequest.current_activity). */
const MOST_ACTIVITY_CHARACTERS = 256;
/** Interests that the contract takes (ReportAgentRequest.interests). */
const MOST_INTERESTS = 16;

/**
 * Reads a line of an agent that speaks JSON lines, by docs/agents.md. Texts that
 * are longer than the contract takes are cut.
 *
 * @param line what stands in it, parsed
 * @throws UnreadableMessage
 */
export function parseAgentMessage(line: JsonValue): AgentMessage {
  if (!isObject(line)) throw new UnreadableMessage("it is no JSON object");
  const { type } = line;
  const read = typeof type === "string" && Object.hasOwn(READERS, type) ? READERS[type] : undefined;
  if (!read) throw new UnreadableMessage(`its type is ${JSON.stringify(type) ?? "missing"}`);
  return read(line);
}

const READERS: Readonly<Record<string, (line: JsonObject) => AgentMessage>> = {
  seen: (line) => ({ kind: "seen", inputId: text(line, "id") }),
  text: (line) => ({ kind: "answer", blocks: textBlocks(text(line, "content")) }),
  file_change: (line) => ({ kind: "answer", blocks: [fileChangeBlock(fileChange(line))] }),
  tool_request: (line) => ({ kind: "answer", blocks: [toolRequestBlock(toolRequest(line))] }),
  error: (line) => ({ kind: "error", message: text(line, "message"), reason: reason(line) }),
  turn_done: () => ({ kind: "turn-done", interests: [] }),
  wait: (line) => ({ kind: "turn-done", interests: interests(line) }),
  usage: (line) => facts({ usage: message(ReportAgentRequest_UsageSchema, line, "usage") }),
  goal: (line) => facts({ goalStatus: member(AgentGoalStatus, line, "status") }),
  mode: (line) => facts({ mode: member(AgentMode, line, "mode") }),
  activity: (line) => facts({ currentActivity: cut(text(line, "text"), MOST_ACTIVITY_CHARACTERS) }),
  subagent: (line) => ({ kind: "subagent", wish: subagent(line) }),
  agent_message: (line) => ({ kind: "message", message: runMessage(line) }),
};

/** The types of lines that an agent says. */
export const MESSAGE_TYPES: readonly string[] = Object.keys(READERS);

const facts = (said: AgentFacts): AgentMessage => ({ kind: "facts", facts: said });

/** Other words than those of the form are passed over, as other fields are. */
function reason(line: JsonObject) {
  return line.reason === "model_unreachable" ? line.reason : undefined;
}

function fileChange(line: JsonObject) {
  const kind = line.kind === undefined ? FileChangeKind.UNSPECIFIED : member(FileChangeKind, line, "kind");
  return { path: text(line, "path"), kind, diff: text(line, "diff", "") };
}

function toolRequest(line: JsonObject) {
  const given = line.arguments ?? "";
  return {
    name: text(line, "name"),
    arguments: typeof given === "string" ? given : JSON.stringify(given),
    id: text(line, "id", ""),
  };
}

function subagent(line: JsonObject): SubagentRequest {
  const [key, prompt] = [text(line, "key"), text(line, "prompt")];
  if (key === "" || prompt === "") throw new UnreadableMessage("its key or its prompt is empty");
  return { key, prompt, name: text(line, "name", ""), agentId: text(line, "agentId", "") };
}

function runMessage(line: JsonObject): RunMessage {
  const type =
    line.kind === undefined ? AgentMessage_Type.UNSPECIFIED : member(AgentMessage_Type, line, "kind");
  return { to: text(line, "to"), type, payload: text(line, "payload") };
}

function interests(line: JsonObject): Interest[] {
  const given = line.interests ?? [];
  if (!Array.isArray(given)) throw new UnreadableMessage("its interests are no list");
  if (given.length > MOST_INTERESTS)
    throw new UnreadableMessage(`it has more than ${MOST_INTERESTS} interests`);
  return given.map((each) => {
    const interest = message(ReportAgentRequest_InterestSchema, each, "interest");
    if (interest.id === "" || interest.interest.case === undefined) {
      throw new UnreadableMessage("an interest lacks its id, or what is waited for");
    }
    return interest;
  });
}

/** A message of the contract in its JSON form; what it does not know is passed over. */
function message<T extends DescMessage>(schema: T, value: JsonValue, name: string): MessageShape<T> {
  try {
    return fromJson(schema, value, { ignoreUnknownFields: true });
  } catch (error) {
    throw new UnreadableMessage(`its ${name} cannot be read: ${(error as Error).message}`);
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(line: JsonObject, name: string, absent?: string): string {
  const value = line[name] ?? absent;
  if (typeof value !== "string") throw new UnreadableMessage(`its ${name} is no text`);
  return value.toWellFormed();
}

/** A member of an enum by its short name in lower case. */
function member<T extends Readonly<Record<string, string | number>>>(
  members: T,
  line: JsonObject,
  name: string,
): Extract<T[keyof T], number> {
  const value = members[text(line, name).toUpperCase()];
  if (typeof value !== "number") throw new UnreadableMessage(`its ${name} is none of those there are`);
  return value as Extract<T[keyof T], number>;
}
