import type { AgentOutputBlock_FileChange_Kind as FileChangeKind } from "#gen/service/v1/agent_pb.js";
import type { BlockContent } from "./agent-reporter.ts";

/**
 * Limits of the contract, in characters, for a text, a diff and the arguments of
 * a tool (AgentOutputBlock).
 */
const MAX_TEXT_CHARACTERS = 65_536;
const MAX_PATH_CHARACTERS = 1_024;
const MAX_TOOL_NAME_CHARACTERS = 256;
const MAX_ID_CHARACTERS = 128;
const MAX_ERROR_CHARACTERS = 4_096;

/** Splits a text of any length into consecutive blocks; none for an empty one. */
export function textBlocks(text: string): BlockContent[] {
  const blocks: BlockContent[] = [];
  for (let rest = text; rest !== ""; ) {
    const content = truncate(rest, MAX_TEXT_CHARACTERS);
    blocks.push({ case: "text", value: { content } });
    rest = rest.slice(content.length);
  }
  return blocks;
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

/** Returns the start of a text, at max `max` UTF-16 units; there are never more characters than units. */
export function truncate(text: string, max: number): string {
  const end = text.length > max && isHighSurrogate(text.charCodeAt(max - 1)) ? max - 1 : max;
  return text.slice(0, end);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
