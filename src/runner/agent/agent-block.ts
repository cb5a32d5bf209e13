import type { AgentOutputBlock_FileChange_Kind as FileChangeKind } from "#gen/service/v1/agent_pb.js";
import type { BlockContent } from "./agent-report.ts";

/** Characters that the contract takes of a text, a diff and the arguments of a tool (AgentOutputBlock). */
const MOST_TEXT_CHARACTERS = 65_536;
const MOST_PATH_CHARACTERS = 1_024;
const MOST_TOOL_NAME_CHARACTERS = 256;
const MOST_ID_CHARACTERS = 128;
const MOST_ERROR_CHARACTERS = 4_096;

/** A text of any length, as blocks that follow one another; none for an empty one. */
export function textBlocks(text: string): BlockContent[] {
  const blocks: BlockContent[] = [];
  for (let rest = text; rest !== ""; ) {
    const content = cut(rest, MOST_TEXT_CHARACTERS);
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
  const path = cut(change.path, MOST_PATH_CHARACTERS);
  const diff = cut(change.diff, MOST_TEXT_CHARACTERS);
  return { case: "fileChange", value: { path, kind: change.kind, diff } };
}

export function toolRequestBlock(request: {
  readonly name: string;
  readonly arguments: string;
  readonly id: string;
}): BlockContent {
  const value = {
    name: cut(request.name, MOST_TOOL_NAME_CHARACTERS),
    arguments: cut(request.arguments, MOST_TEXT_CHARACTERS),
    id: cut(request.id, MOST_ID_CHARACTERS),
  };
  return { case: "toolRequest", value };
}

export function errorBlock(message: string): BlockContent {
  return { case: "error", value: { message: cut(message, MOST_ERROR_CHARACTERS) } };
}

/** The beginning of a text, at most so many UTF-16 units, which are at least as many as characters. */
export function cut(text: string, most: number): string {
  const end = text.length > most && isHighSurrogate(text.charCodeAt(most - 1)) ? most - 1 : most;
  return text.slice(0, end);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
