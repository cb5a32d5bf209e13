import { create } from "@bufbuild/protobuf";
import type { UserInputBlock } from "#gen/service/v1/agent_pb.js";
import {
  type AgentReview,
  AgentReviewSchema,
  type AgentReviewComment as Comment,
  AgentReviewCommentSchema as CommentSchema,
  type AgentReviewDraft as Draft,
  type AgentReviewComment_Quote as Quote,
  AgentReviewComment_QuoteSchema as QuoteSchema,
} from "#gen/service/v1/agent_review_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { diffBaseOf } from "../../environment/environment-changes.ts";
import { DomainError, limitReached, phaseUnsuitable, valueUnusable } from "../../error.ts";
import { requireNoDeceptiveText } from "../../text/deceptive-text.ts";
import { isOnPresentDiff, type PresentDiffs, quoteOf } from "./comment-place.ts";
import { keptLine, sideOf } from "./diff-lines.ts";

/** Maximum number of drafts that a subject may have for one run (contract, CreateAgentReviewDraft). */
const MAX_DRAFTS = 10;

/** The text of a draft or a review. */
export type ReviewContent = Pick<AgentReview, "summary" | "comments">;

/**
 * Requires that every server that may deliver an input knows reviews.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireReviewsKnown(areKnown: boolean): void {
  if (areKnown) return;
  const message = "reviews can be sent once every server runs this release";
  throw phaseUnsuitable("installation", "UPGRADING", message);
}

/**
 * Returns the review in a message, and its index among the inputs; undefined for none.
 * @throws DomainError VALUE_UNUSABLE for a second review
 */
export function reviewIn({
  inputs,
}: Pick<UserInputBlock, "inputs">): { index: number; review: AgentReview } | undefined {
  const found = inputs.flatMap(({ input }, index) =>
    input.case === "review" ? [{ index, review: input.value }] : [],
  );
  const [first, second] = found;
  if (!second) return first;
  const field = `userInput.inputs[${second.index}].review`;
  throw valueUnusable(field, `${field} is the second review of the message: send one, with all comments`);
}

/**
 * Returns comments in the form in which they are stored: with the lines that they are on.
 * @param before stored comments, which have their lines already
 * @param path JSON path of the message with the comments, such as `userInput.inputs[0].review`; empty for the request
 * @throws DomainError TEXT_DECEPTIVE; VALUE_UNUSABLE for lines that the diff does not show
 */
export function keptContent(
  { summary, comments }: ReviewContent,
  diffs: PresentDiffs,
  { before = [], path = "" }: { readonly before?: readonly Comment[]; readonly path?: string },
): ReviewContent {
  const prefix = path === "" ? "" : `${path}.`;
  requireNoDeceptiveText(summary, `${prefix}summary`);
  const kept = comments.map((comment, index) => {
    const field = `${prefix}comments[${index}]`;
    requireNoDeceptiveText(comment.text, `${field}.text`);
    const quote = requireQuote(comment, diffs, before, field);
    const { path: file, firstLine, lastLine, digest, text } = comment;
    return create(CommentSchema, {
      path: file,
      side: sideOf(comment.side),
      firstLine,
      lastLine,
      base: diffBaseOf(comment.base),
      digest,
      text,
      ...(quote && { quote }),
    });
  });
  return { summary, comments: kept };
}

/** Returns the lines that a comment is on. @throws DomainError VALUE_UNUSABLE for lines that the diff does not show */
function requireQuote(
  comment: Comment,
  diffs: PresentDiffs,
  before: readonly Comment[],
  field: string,
): Quote | undefined {
  if (isOnPresentDiff(comment, diffs)) {
    const quote = quoteOf(comment, diffs);
    if (quote) return quote;
    throw valueUnusable(
      field,
      `${field} is on lines that the diff with its digest does not show in that file`,
    );
  }
  const known = before.find((each) => isSamePlace(each, comment))?.quote;
  if (known) return known;
  const { quote } = comment;
  if (!quote || quote.lines.length === 0) return undefined;
  const count = comment.lastLine - comment.firstLine + 1;
  if (quote.lines.length !== count) {
    const lines = `${field}.quote.lines`;
    throw valueUnusable(lines, `${lines} has ${quote.lines.length} lines, and the comment is on ${count}`);
  }
  return create(QuoteSchema, {
    lines: quote.lines.map(keptLine),
    before: quote.before.map(keptLine),
    after: quote.after.map(keptLine),
    oldPath: quote.oldPath,
  });
}

function isSamePlace(one: Comment, other: Comment): boolean {
  return (
    one.path === other.path &&
    sideOf(one.side) === sideOf(other.side) &&
    one.firstLine === other.firstLine &&
    one.lastLine === other.lastLine &&
    diffBaseOf(one.base) === diffBaseOf(other.base) &&
    one.digest === other.digest
  );
}

/**
 * Returns the review that a draft becomes when it is sent.
 * @param revision the revision that the sender has seen; 0 for any
 * @throws DomainError DRAFT_CHANGED; VALUE_UNUSABLE for an empty draft
 */
export function reviewOfDraft(draft: Draft, revision: bigint, field: string): AgentReview {
  if (revision !== 0n) requireDraftRevision(draft, revision);
  const { summary, comments } = draft;
  if (summary === "" && comments.length === 0)
    throw valueUnusable(`${field}.draftId`, `${field}.draftId names a draft without a summary and comments`);
  return create(AgentReviewSchema, { summary, comments });
}

/** Requires that a draft is at a revision. @throws DomainError DRAFT_CHANGED when it is at another one */
export function requireDraftRevision({ revision: present }: Pick<Draft, "revision">, revision: bigint): void {
  if (present === revision) return;
  throw new DomainError(
    ErrorReason.DRAFT_CHANGED,
    `the draft has changed and is at revision ${present}: read it with ListAgentReviewDrafts and try again`,
    { revision: String(present) },
  );
}

/** Requires that a subject may have one more draft for a run. @throws DomainError LIMIT_REACHED at the maximum */
export function requireDraftSpace(count: number): void {
  if (count < MAX_DRAFTS) return;
  const message = `you have ${MAX_DRAFTS} drafts of reviews for the agent run: send or delete one`;
  throw limitReached("agent review draft", MAX_DRAFTS, message);
}
