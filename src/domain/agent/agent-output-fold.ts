import { clone, create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import {
  AgentOutputBlockSchema,
  type AgentOutputBlock as Block,
  AgentOutputBlock_QuestionSchema as QuestionSchema,
  AgentOutputBlock_ToolCall_State as State,
  AgentOutputBlock_ToolCallSchema as ToolCallSchema,
} from "#gen/service/v1/agent_pb.js";

/** The fold keys of blocks of which only the latest is shown. */
export const REPLACED_KEYS: readonly string[] = ["p", "u"];

/**
 * Returns the key that a block shares with the blocks of its execution that it is folded with. Plans
 * and usage replace the earlier block; blocks of a tool call or a question are merged.
 *
 * @returns null for a block that is not folded
 */
export function foldKey({ block }: Block): string | null {
  switch (block.case) {
    case "toolCall":
      return `t:${block.value.id}`;
    case "question":
      return `q:${block.value.id}`;
    case "plan":
      return "p";
    case "usage":
      return "u";
    default:
      return null;
  }
}

/**
 * Returns a block of the folded view.
 * @param before the folded block so far; undefined for the first one
 * @param later the next block of the same key
 */
export function foldBlock(before: Block | undefined, later: Block): Block {
  const folded = clone(AgentOutputBlockSchema, later);
  folded.lastSequence = later.sequence;
  Object.assign(folded, timesOf(before, later));
  if (!before) return folded;
  const [one, other] = [before.block, later.block];
  if (one.case === "toolCall" && other.case === "toolCall") {
    folded.block = { case: "toolCall", value: merged(ToolCallSchema, one.value, other.value) };
  } else if (one.case === "question" && other.case === "question") {
    folded.block = { case: "question", value: merged(QuestionSchema, one.value, other.value) };
  } else {
    return folded;
  }
  const { sequence, at, inputId } = before;
  return create(AgentOutputBlockSchema, { ...folded, sequence, ...(at && { at }), inputId });
}

/** Returns when a tool call began to run and when it ended, as far as its blocks show. */
function timesOf(before: Block | undefined, { block, at }: Block): Pick<Block, "startedAt" | "endedAt"> {
  if (block.case !== "toolCall") return {};
  const { state } = block.value;
  const times = {
    startedAt: before?.startedAt ?? (state === State.RUNNING ? at : undefined),
    endedAt: before?.endedAt,
  };
  if (state === State.UNSPECIFIED) return times;
  // A tool call that runs again has not ended.
  const hasEnded = state === State.DONE || state === State.FAILED;
  return { ...times, endedAt: hasEnded ? (before?.endedAt ?? at) : undefined };
}

/** Returns a message with the fields of `later` that are not empty in place of those of `before`. */
function merged<D extends DescMessage>(
  schema: D,
  before: MessageShape<D>,
  later: MessageShape<D>,
): MessageShape<D> {
  const result = clone(schema, before);
  const [target, source] = [result, later] as unknown as Record<string, unknown>[];
  for (const { localName } of schema.fields) {
    const value = source?.[localName];
    const isEmpty = Array.isArray(value) ? value.length === 0 : !value;
    if (target && !isEmpty) target[localName] = value;
  }
  return result;
}
