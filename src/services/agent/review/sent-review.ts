import { create } from "@bufbuild/protobuf";
import {
  type AgentInput,
  UserInputBlock_InputSchema as PartSchema,
  type UserInputBlock,
} from "#gen/service/v1/agent_pb.js";
import {
  type AgentReview,
  type AgentReviewComment,
  AgentReviewSchema,
} from "#gen/service/v1/agent_review_pb.js";
import { presentOf } from "../../../domain/agent/review/comment-place.ts";
import {
  keptContent,
  requireReviewsKnown,
  reviewIn,
  reviewOfDraft,
} from "../../../domain/agent/review/review.ts";
import { reviewWords } from "../../../domain/agent/review/review-words.ts";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import type { StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findReviewDraft, removeReviewDraft } from "../../../store/agent/agent-review-draft.ts";
import { AGENT_REVIEWS_LEVEL, mayStore } from "../../../store/feature-level.ts";
import type { Reader, Scope, WriteTransaction } from "../../../store/store.ts";
import { yieldToEventLoop } from "../../call/yield-to-event-loop.ts";
import { type EnvironmentDiffs, findPresentDiffs } from "./present-diffs.ts";

/**
 * Returns a message as it is stored. If it has a review, adds the lines that the review's comments refer to, and
 * removes the draft that it names.
 *
 * @throws DomainError NOT_FOUND, DRAFT_CHANGED, TEXT_DECEPTIVE, VALUE_UNUSABLE or PHASE_UNSUITABLE
 */
export async function acceptReview(
  tx: WriteTransaction,
  caller: Caller,
  stored: StoredAgentExecution,
  message: UserInputBlock,
): Promise<UserInputBlock> {
  const found = reviewIn(message);
  if (!found) return message;
  requireReviewsKnown(mayStore(tx, AGENT_REVIEWS_LEVEL));
  const path = `userInput.inputs[${found.index}].review`;
  const value = await resolveReview(tx, caller, stored, found.review, path);
  const part = create(PartSchema, { input: { case: "review", value } });
  return { ...message, inputs: message.inputs.with(found.index, part) };
}

async function resolveReview(
  tx: WriteTransaction,
  caller: Caller,
  { execution, earlier, environmentId }: StoredAgentExecution,
  review: AgentReview,
  path: string,
): Promise<AgentReview> {
  if (review.draftId === "") {
    const diffs = await findPresentDiffs(tx.db, caller, environmentId);
    return create(AgentReviewSchema, keptContent(review, diffs, { path }));
  }
  const draft = await findReviewDraft(tx.db, caller, review.draftId);
  // A run that begins with a review continues the run that the review is about.
  if (!draft || ![execution.id, earlier?.id].includes(draft.agentExecutionId))
    throw notFound("agent review draft");
  const sent = reviewOfDraft(draft, review.draftRevision, path);
  await removeReviewDraft(tx, caller, draft.id);
  return sent;
}

/** Adds to each comment its current position, in place. */
export async function addPresent(
  comments: readonly AgentReviewComment[],
  diffs: EnvironmentDiffs,
): Promise<void> {
  for (const comment of comments) {
    comment.present = presentOf(comment, diffs);
    // Searching for one comment may scan megabytes.
    await yieldToEventLoop();
  }
}

/** Returns the review of an input; undefined for none. */
export function reviewOf({ input }: AgentInput): AgentReview | undefined {
  return input.case === "userInput" ? reviewIn(input.value)?.review : undefined;
}

/**
 * Adds the text of its review, if it has one, and the current positions of the review's comments to an input that is
 * being delivered, in place.
 */
export async function fillReview(
  db: Reader,
  scope: Scope,
  environmentId: string,
  { input }: AgentInput,
): Promise<void> {
  const found = input.case === "userInput" ? reviewIn(input.value) : undefined;
  if (input.case !== "userInput" || !found) return;
  const diffs = await findPresentDiffs(db, scope, environmentId);
  await addPresent(found.review.comments, diffs);
  const texts = reviewWords(found.review, diffs.folder).map((content) =>
    create(PartSchema, { input: { case: "text", value: { content } } }),
  );
  input.value.inputs.splice(found.index, 0, ...texts);
}
