import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AgentReviewCommentSchema,
  AgentReviewComment_Side as Side,
} from "#gen/service/v1/agent_review_pb.js";
import type { DiffBase } from "#gen/service/v1/environment_changes_pb.js";
import type { PatchLine } from "./patch-lines.ts";

/** A comment that has not been sent. */
export interface Comment {
  readonly path: string;
  readonly isOld: boolean;
  readonly line: number;
  readonly text: string;
  /** The line as it was seen. */
  readonly quote: string;
  readonly base: DiffBase;
  readonly digest: string;
}

/** Most characters of a line in a quote (contract). */
const QUOTE_LENGTH = 160;

/** Returns where a comment on a line of a diff stands. */
export const placeOf = (line: PatchLine): { readonly isOld: boolean; readonly line: number } =>
  line.new === undefined ? { isOld: true, line: line.old ?? 0 } : { isOld: false, line: line.new };

/** Returns a comment as it is sent. */
export const sentComment = (comment: Comment): MessageInitShape<typeof AgentReviewCommentSchema> => ({
  path: comment.path,
  side: comment.isOld ? Side.OLD : Side.NEW,
  firstLine: comment.line,
  lastLine: comment.line,
  base: comment.base,
  digest: comment.digest,
  text: comment.text,
  quote: { lines: [comment.quote.slice(0, QUOTE_LENGTH)] },
});
