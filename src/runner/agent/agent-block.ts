import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  AgentOutputBlock_FileChange_Kind as FileChangeKind,
  AgentOutputBlock_PlanSchema as PlanSchema,
  AgentOutputBlock_QuestionSchema as QuestionSchema,
  AgentOutputBlock_ToolCallSchema as ToolCallSchema,
  AgentOutputBlock_UsageSchema as UsageSchema,
} from "#gen/service/v1/agent_pb.js";
import type { BlockContent } from "./agent-reporter.ts";

/** The values of blocks; every field is optional. */
export type ToolCall = Omit<MessageInitShape<typeof ToolCallSchema>, "$typeName" | "$unknown">;
export type Plan = Omit<MessageInitShape<typeof PlanSchema>, "$typeName" | "$unknown">;
export type Question = Omit<MessageInitShape<typeof QuestionSchema>, "$typeName" | "$unknown">;
export type Usage = Omit<MessageInitShape<typeof UsageSchema>, "$typeName" | "$unknown">;

/** The contract's limit, in characters, for a text, a diff and the arguments of a tool (AgentOutputBlock). */
const MAX_TEXT_CHARACTERS = 65_536;
const MAX_PATH_CHARACTERS = 1_024;
const MAX_TOOL_NAME_CHARACTERS = 256;
const MAX_ID_CHARACTERS = 128;
const MAX_ERROR_CHARACTERS = 4_096;
const MAX_TITLE_CHARACTERS = 1_024;
const MAX_LOCATIONS = 32;
const MAX_DIFFS = 8;
const MAX_DIFF_CHARACTERS = 32_768;
const MAX_ENTRIES = 64;
const MAX_QUESTION_CHARACTERS = 4_096;
/** Maximum length of a question's schema. A longer one is left out, since a truncated schema is invalid. */
const MAX_SCHEMA_CHARACTERS = 16_384;

/** Splits a text into consecutive blocks; returns none for an empty text. */
export function textBlocks(text: string): BlockContent[] {
  return pieces(text).map((content) => ({ case: "text", value: { content } }));
}

/** Splits an agent's thoughts into consecutive blocks; returns none for an empty text. */
export function thoughtBlocks(text: string): BlockContent[] {
  return pieces(text).map((content) => ({ case: "thought", value: { content } }));
}

function pieces(text: string): string[] {
  const all: string[] = [];
  for (let rest = text; rest !== ""; ) {
    const content = truncate(rest, MAX_TEXT_CHARACTERS);
    all.push(content);
    rest = rest.slice(content.length);
  }
  return all;
}

/** Returns the block for a tool call or for an update of one; its id must not be empty. */
export function toolCallBlock(call: ToolCall): BlockContent {
  return { case: "toolCall", value: cutToolCall(call) };
}

/** Truncates a tool call's texts and lists to the limits of the contract. */
export function cutToolCall(call: ToolCall): ToolCall {
  return {
    ...call,
    id: truncate(call.id ?? "", MAX_ID_CHARACTERS),
    title: truncate(call.title ?? "", MAX_TITLE_CHARACTERS),
    input: truncate(call.input ?? "", MAX_TEXT_CHARACTERS),
    result: truncate(call.result ?? "", MAX_TEXT_CHARACTERS),
    locations: (call.locations ?? []).slice(0, MAX_LOCATIONS).map((location) => ({
      ...location,
      path: truncate(location.path ?? "", MAX_PATH_CHARACTERS),
    })),
    diffs: (call.diffs ?? []).slice(0, MAX_DIFFS).map((diff) => ({
      ...diff,
      path: truncate(diff.path ?? "", MAX_PATH_CHARACTERS),
      diff: truncate(diff.diff ?? "", MAX_DIFF_CHARACTERS),
    })),
  };
}

export function planBlock({ entries = [] }: Plan): BlockContent {
  const value = {
    entries: entries.slice(0, MAX_ENTRIES).map((entry) => ({
      ...entry,
      content: truncate(entry.content ?? "", MAX_TITLE_CHARACTERS),
    })),
  };
  return { case: "plan", value };
}

/** Returns the block for a question or for an update of one; its id must not be empty. */
export function questionBlock(question: Question): BlockContent {
  const { id = "", message = "", schema = "" } = question;
  const value = {
    ...question,
    id: truncate(id, MAX_ID_CHARACTERS),
    message: truncate(message, MAX_QUESTION_CHARACTERS),
    schema: schema.length > MAX_SCHEMA_CHARACTERS ? "" : schema,
  };
  return { case: "question", value };
}

export function usageBlock(value: Usage): BlockContent {
  return { case: "usage", value };
}

export function fileChangeBlock(change: {
  readonly path: string;
  readonly kind: FileChangeKind;
  readonly diff: string;
}): BlockContent {
  const path = truncate(change.path, MAX_PATH_CHARACTERS);
  const diff = truncate(change.diff, MAX_TEXT_CHARACTERS);
  return { case: "fileChange", value: { path, kind: change.kind, diff } };
}

export function toolRequestBlock(request: {
  readonly name: string;
  readonly arguments: string;
  readonly id: string;
}): BlockContent {
  const value = {
    name: truncate(request.name, MAX_TOOL_NAME_CHARACTERS),
    arguments: truncate(request.arguments, MAX_TEXT_CHARACTERS),
    id: truncate(request.id, MAX_ID_CHARACTERS),
  };
  return { case: "toolRequest", value };
}

export function errorBlock(message: string): BlockContent {
  return { case: "error", value: { message: truncate(message, MAX_ERROR_CHARACTERS) } };
}

/**
 * Truncates a text to at most `max` UTF-16 units without splitting a surrogate pair. A text never has more
 * characters than units.
 */
export function truncate(text: string, max: number): string {
  const end = text.length > max && isHighSurrogate(text.charCodeAt(max - 1)) ? max - 1 : max;
  return text.slice(0, end);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
