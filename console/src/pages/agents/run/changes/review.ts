import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AgentReviewComment,
  type AgentReviewCommentSchema,
  AgentReviewComment_Side as Side,
} from "#gen/service/v1/agent_review_pb.js";
import { DiffBase } from "#gen/service/v1/environment_changes_pb.js";

/** A comment that has not been sent. */
export interface Comment {
  readonly path: string;
  readonly isOld: boolean;
  readonly line: number;
  /** The last line of a comment on several lines. */
  readonly lastLine?: number;
  readonly text: string;
  /** The lines as they were shown, separated by line breaks. */
  readonly quote: string;
  readonly base: DiffBase;
  readonly digest: string;
}

/** Maximum characters of a line in a quote (contract). */
const QUOTE_LENGTH = 160;

/** Returns a comment as the contract sends it. */
export const sentComment = (comment: Comment): MessageInitShape<typeof AgentReviewCommentSchema> => ({
  path: comment.path,
  side: comment.isOld ? Side.OLD : Side.NEW,
  firstLine: comment.line,
  lastLine: comment.lastLine ?? comment.line,
  base: comment.base,
  digest: comment.digest,
  text: comment.text,
  ...(comment.quote !== "" && {
    quote: { lines: comment.quote.split("\n").map((line) => line.slice(0, QUOTE_LENGTH)) },
  }),
});

/** Returns a comment of a draft. */
export const commentOf = (kept: AgentReviewComment): Comment => ({
  path: kept.path,
  isOld: kept.side === Side.OLD,
  line: kept.firstLine,
  lastLine: kept.lastLine,
  text: kept.text,
  quote: kept.quote?.lines.join("\n") ?? "",
  base: kept.base || DiffBase.ENVIRONMENT,
  digest: kept.digest,
});
