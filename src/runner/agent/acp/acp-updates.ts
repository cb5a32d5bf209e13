import { isAbsolute, relative } from "node:path";
import type {
  ToolKind as AcpToolKind,
  ContentBlock,
  PlanEntryPriority,
  PlanEntryStatus,
  SessionUpdate,
  ToolCallContent,
  ToolCallStatus,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { createTwoFilesPatch } from "diff";
import {
  AgentOutputBlock_FileChange_Kind as FileChangeKind,
  AgentOutputBlock_Plan_Priority as Priority,
  AgentOutputBlock_Plan_State as StepState,
  AgentOutputBlock_ToolCall_Kind as ToolKind,
  AgentOutputBlock_ToolCall_State as ToolState,
} from "#gen/service/v1/agent_pb.js";
import { planBlock, type ToolCall, usageBlock } from "../agent-block.ts";
import type { AcpOutput } from "./acp-output.ts";

const TOOL_KINDS: Readonly<Record<AcpToolKind, ToolKind>> = {
  read: ToolKind.READ,
  edit: ToolKind.EDIT,
  delete: ToolKind.DELETE,
  move: ToolKind.MOVE,
  search: ToolKind.SEARCH,
  execute: ToolKind.EXECUTE,
  think: ToolKind.THINK,
  fetch: ToolKind.FETCH,
  switch_mode: ToolKind.OTHER,
  other: ToolKind.OTHER,
};

const TOOL_STATES: Readonly<Record<ToolCallStatus, ToolState>> = {
  pending: ToolState.PENDING,
  in_progress: ToolState.RUNNING,
  completed: ToolState.DONE,
  failed: ToolState.FAILED,
};

const STEP_STATES: Readonly<Record<PlanEntryStatus, StepState>> = {
  pending: StepState.PENDING,
  in_progress: StepState.RUNNING,
  completed: StepState.DONE,
};

const PRIORITIES: Readonly<Record<PlanEntryPriority, Priority>> = {
  high: Priority.HIGH,
  medium: Priority.MEDIUM,
  low: Priority.LOW,
};

/** Maximum of the contract for a tool call's id, in characters. */
const MAX_ID_CHARACTERS = 128;
/** Longest time for one diff, in milliseconds; a text that needs more has none. */
const DIFF_MS = 200;
/** Longest text that is compared, in characters. */
const MAX_COMPARED_CHARACTERS = 1_048_576;

/** The context in which an update is read. */
export interface UpdateContext {
  readonly output: AcpOutput;
  /** The folder that reported paths are relative to. */
  readonly tree: string;
  /** Returns the present output of a terminal; undefined for an unknown one. */
  terminalOutput(terminalId: string): string | undefined;
  /** Returns which session of the run it is, from 1. */
  sessionNumber(): number;
}

/** The kinds of updates that tell of the session itself, and become no block. */
type SessionChange = Extract<
  SessionUpdate,
  { sessionUpdate: "available_commands_update" | "current_mode_update" | "config_option_update" }
>;

/**
 * Tells an update of a session in blocks.
 * @returns the update if it changes the session itself, which is the caller's to know
 */
export function describeUpdate(update: SessionUpdate, context: UpdateContext): SessionChange | undefined {
  const { output } = context;
  switch (update.sessionUpdate) {
    case "agent_message_chunk":
      output.words("text", contentText(update.content));
      return undefined;
    case "agent_thought_chunk":
      output.words("thought", contentText(update.content));
      return undefined;
    case "tool_call":
    case "tool_call_update":
      if (update.toolCallId !== "") output.call(toToolCall(update, context));
      return undefined;
    case "plan":
      output.block(
        planBlock({
          entries: update.entries.map(({ content, status, priority }) => ({
            content: output.mask(content),
            state: STEP_STATES[status] ?? StepState.UNSPECIFIED,
            priority: PRIORITIES[priority] ?? Priority.UNSPECIFIED,
          })),
        }),
      );
      return undefined;
    case "usage_update":
      tellUsage(update, output);
      return undefined;
    case "session_info_update":
      if (update.title) output.activity(update.title);
      return undefined;
    case "notice":
      tellNotice(update, output);
      return undefined;
    case "compaction_update":
      output.activity(`compaction of the conversation: ${update.status}`);
      if (update.error) output.error(`the conversation was not compacted: ${update.error}`);
      return undefined;
    case "available_commands_update":
    case "current_mode_update":
    case "config_option_update":
      return update;
    default:
      // The user's own words, and summaries, which are the agent's to keep.
      return undefined;
  }
}

/** Returns a tool call, or what has changed of one, as the contract has it, without secrets. */
export function toToolCall(call: ToolCallUpdate, context: UpdateContext): ToolCall {
  return context.output.mask(unmaskedCall(call, context));
}

function unmaskedCall(
  call: ToolCallUpdate,
  { tree, terminalOutput, sessionNumber }: UpdateContext,
): ToolCall {
  const number = sessionNumber();
  // Agents name calls within a session: those of a later one are others.
  const prefix = number === 1 || call.toolCallId === "" ? "" : `${number}:`;
  const content = call.content ?? [];
  const texts = content.flatMap((each) => resultText(each, terminalOutput));
  return {
    id: `${prefix}${call.toolCallId}`.slice(0, MAX_ID_CHARACTERS),
    title: call.title || call.name || "",
    kind: call.kind ? (TOOL_KINDS[call.kind] ?? ToolKind.OTHER) : ToolKind.UNSPECIFIED,
    state: call.status ? (TOOL_STATES[call.status] ?? ToolState.UNSPECIFIED) : ToolState.UNSPECIFIED,
    locations: (call.locations ?? []).map(({ path, line }) => ({
      path: shownPath(tree, path),
      line: isLine(line) ? line : 0,
    })),
    input: textOrJson(call.rawInput),
    result: texts.length > 0 ? texts.join("\n") : textOrJson(call.rawOutput),
    diffs: content.flatMap((each) => (each.type === "diff" ? [toDiff(each, tree)] : [])),
  };
}

/** Returns a path relative to the tree; one outside of it stays as it is. */
export function shownPath(tree: string, path: string): string {
  if (!isAbsolute(path)) return path;
  const shown = relative(tree, path);
  return shown === "" || shown.startsWith("..") ? path : shown;
}

/** Returns the words of a content; those of what is no text name it. */
export function contentText(content: ContentBlock): string {
  switch (content.type) {
    case "text":
      return content.text;
    case "resource_link":
      return content.uri;
    case "resource":
      return "text" in content.resource ? content.resource.text : content.resource.uri;
    default:
      return `(${content.type})`;
  }
}

function resultText(
  content: ToolCallContent,
  terminalOutput: UpdateContext["terminalOutput"],
): readonly string[] {
  if (content.type === "content") return [contentText(content.content)];
  if (content.type === "terminal") return [terminalOutput(content.terminalId) ?? ""];
  return [];
}

function toDiff({ path, oldText, newText }: Extract<ToolCallContent, { type: "diff" }>, tree: string) {
  const shown = shownPath(tree, path);
  const before = oldText ?? "";
  const isComparable = before.length + newText.length <= MAX_COMPARED_CHARACTERS;
  const options = { context: 3, timeout: DIFF_MS };
  const diff = isComparable
    ? createTwoFilesPatch(shown, shown, before, newText, undefined, undefined, options)
    : undefined;
  return {
    path: shown,
    kind: typeof oldText === "string" ? FileChangeKind.MODIFIED : FileChangeKind.CREATED,
    // Without the line that only separates files.
    diff: diff?.replace(/^=+\n/, "") ?? "",
  };
}

type UsageUpdate = Extract<SessionUpdate, { sessionUpdate: "usage_update" }>;

function tellUsage({ used, size, cost }: UsageUpdate, output: AcpOutput): void {
  const [contextUsed, contextSize] = [toCount(used), toCount(size)];
  const isCost = cost && cost.amount >= 0 && Number.isFinite(cost.amount) && /^[A-Z]{3}$/.test(cost.currency);
  output.block(
    usageBlock({
      contextUsed,
      contextSize,
      ...(isCost && { cost: { amount: cost.amount, currency: cost.currency } }),
    }),
  );
  output.update({ usage: { contextWindowLength: contextUsed, contextWindowLimit: contextSize } });
}

type Notice = Extract<SessionUpdate, { sessionUpdate: "notice" }>;

function tellNotice({ severity, title, description }: Notice, output: AcpOutput): void {
  const text = description ? `${title}: ${description}` : title;
  if (severity === "info") output.activity(text);
  else output.error(text);
}

function toCount(value: number): bigint {
  return Number.isFinite(value) && value > 0 ? BigInt(Math.floor(value)) : 0n;
}

function isLine(line: number | null | undefined): line is number {
  return typeof line === "number" && Number.isInteger(line) && line > 0 && line <= 0x7fffffff;
}

function textOrJson(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
