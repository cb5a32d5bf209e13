import {
  type AgentReview,
  type AgentReviewComment as Comment,
  AgentReviewComment_Side as Side,
  AgentReviewComment_State as State,
} from "#gen/service/v1/agent_review_pb.js";
import { withEscapes } from "../../text/deceptive-text.ts";

/** Maximum length of one text for an agent in characters (contract, UserInputBlock.TextInput). */
const MAX_TEXT_CHARACTERS = 100_000;

/**
 * Returns a review as text for an agent: its summary, and each comment with its place, its lines and
 * its text.
 * @param folder the folder that the agent works in, relative to its environment; paths are relative to it
 * @returns consecutive texts of at most 100,000 characters each
 */
export function reviewWords({ summary, comments }: AgentReview, folder: string): string[] {
  const head =
    comments.length === 0 ? "Review of your changes:" : `Review of your changes, ${countOf(comments)}:`;
  const sections = [
    summary === "" ? head : `${head}\n\n${summary}`,
    ...comments.map((comment, index) => `${index + 1}. ${commentWords(comment, folder)}`),
  ];
  const texts: string[] = [];
  for (const section of sections) {
    const last = texts.at(-1);
    const joined = last === undefined ? section : `${last}\n\n${section}`;
    if (last !== undefined && joined.length <= MAX_TEXT_CHARACTERS) texts[texts.length - 1] = joined;
    else texts.push(section);
  }
  return texts;
}

function countOf({ length }: readonly Comment[]): string {
  return length === 1 ? "1 comment" : `${length} comments`;
}

function commentWords(comment: Comment, folder: string): string {
  const { text, quote } = comment;
  const quoted = quote?.lines.map((line) => `> ${line}`) ?? [];
  return [placeWords(comment, folder), ...quoted, text].join("\n");
}

function placeWords({ path, firstLine, lastLine, side, present }: Comment, folder: string): string {
  const isOutdated = present?.state === State.OUTDATED;
  const place = present && !isOutdated ? present : { path, firstLine, lastLine };
  const file = printablePath(pathFrom(folder, place.path));
  const lines =
    place.firstLine === place.lastLine
      ? `line ${place.firstLine}`
      : `lines ${place.firstLine}-${place.lastLine}`;
  const before = side === Side.OLD ? ", as they were before the changes" : "";
  const outdated = isOutdated
    ? " (outdated: these lines have changed since the comment was made, or are gone)"
    : "";
  return `${file}, ${lines}${before}${outdated}:`;
}

/** Returns the path of a file as seen from a folder, both relative to the environment. */
function pathFrom(folder: string, path: string): string {
  const [from, to] = [folder.split("/").filter((name) => name !== ""), path.split("/")];
  let shared = 0;
  while (shared < from.length && shared < to.length - 1 && from[shared] === to[shared]) shared++;
  return [...from.slice(shared).map(() => ".."), ...to.slice(shared)].join("/");
}

/** Returns a path as it is, or quoted and escaped if it could be misread. */
function printablePath(path: string): string {
  const quoted = withEscapes(JSON.stringify(path)).replace(
    /[\u007f-\u009f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return quoted === `"${path}"` ? path : quoted;
}
