import { randomUUID } from "node:crypto";
import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { type AgentInput, AgentInputReceipt, AgentInputSchema } from "#gen/service/v1/agent_pb.js";
import {
  type AgentReview,
  type AgentReviewDraft,
  AgentReviewDraftSchema,
  AgentReviewSchema,
  type AgentReviewComment as Comment,
  AgentReviewCommentSchema as CommentSchema,
  AgentReviewComment_Side as Side,
  AgentReviewComment_State as State,
} from "#gen/service/v1/agent_review_pb.js";
import { AgentReviewService } from "#gen/service/v1/agent_review_service_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { type DiffBase, EnvironmentFileDiff_Kind as Kind } from "#gen/service/v1/environment_changes_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { type PresentDiffs, quoteOf } from "../../../domain/agent/review/comment-place.ts";
import { diffBaseOf } from "../../../domain/environment/environment-changes.ts";
import { createHttpTransport } from "../../../runner/protocol/connection.ts";
import { readText } from "../../folders/file-access.ts";
import { StartError } from "../../start-error.ts";
import { call, readPages } from "../call.ts";
import { jsonText, printable } from "../printable.ts";
import type { ServerAccess } from "../server-access.ts";

/** The content of a review from the command line. */
export interface ReviewArguments {
  /** Places such as `src/a.ts:3-5`, each followed by the comment about it. */
  readonly comments: readonly string[];
  readonly summary: string | undefined;
  /** A JSON file with a service.v1.AgentReview, to which the others are added; undefined for none. */
  readonly from: string | undefined;
}

/**
 * Sends a review to a run. Comments refer to the current diff, unless the file says otherwise.
 * @returns the id of the message
 * @throws StartError
 */
export async function sendReview(
  access: ServerAccess,
  agentExecutionId: string,
  { comments, summary, from }: ReviewArguments,
): Promise<string> {
  const given = from === undefined ? create(AgentReviewSchema) : await reviewOf(from);
  given.comments.push(...commentsOf(comments));
  if (summary !== undefined) given.summary = summary;
  if (given.comments.some(({ digest }) => digest === ""))
    await placeOnPresentDiff(access, agentExecutionId, given);
  const id = randomUUID();
  const value = { id, inputs: [{ input: { case: "review" as const, value: given } }] };
  const request = { agentExecutionId, input: { case: "userInput" as const, value } };
  await call(access, (options) => clientOf(access, AgentService).sendToAgentExecution(request, options));
  return id;
}

async function reviewOf(file: string): Promise<AgentReview> {
  const text = readText(file);
  try {
    return fromJson(AgentReviewSchema, JSON.parse(text) as JsonValue);
  } catch (error) {
    throw new StartError(`${file} holds no review: ${(error as Error).message}`);
  }
}

/** @throws StartError for a malformed place, or one without a text */
function commentsOf(words: readonly string[]): Comment[] {
  const comments: Comment[] = [];
  for (let at = 0; at < words.length; at += 2) {
    const [place = "", text] = [words[at], words[at + 1]];
    const [, path = "", first, last = first] = /^(.+):(\d{1,9})(?:-(\d{1,9}))?$/s.exec(place) ?? [];
    if (path === "" || text === undefined)
      throw new StartError(
        `--comment takes a place such as src/app.ts:12 or src/app.ts:12-15, and what to say about it: ${printable(place)}`,
      );
    comments.push(create(CommentSchema, { path, firstLine: Number(first), lastLine: Number(last), text }));
  }
  return comments;
}

/** Adds the digest of the current diff, and the lines they refer to, to comments without a digest. */
async function placeOnPresentDiff(
  access: ServerAccess,
  run: string,
  { comments }: AgentReview,
): Promise<void> {
  const { agentExecution } = await call(access, (options) =>
    clientOf(access, AgentService).getAgentExecution({ agentExecutionId: run }, options),
  );
  const environmentId = agentExecution?.status?.usedEnvironments[0]?.environmentId ?? "";
  const unplaced = comments.filter(({ digest }) => digest === "");
  for (const base of new Set(unplaced.map((each) => diffBaseOf(each.base)))) {
    const diffs = await readDiff(access, environmentId, base);
    for (const comment of unplaced.filter((each) => diffBaseOf(each.base) === base)) {
      const quote = quoteOf(comment, diffs);
      const { path, firstLine, lastLine } = comment;
      if (!quote)
        throw new StartError(
          `the diff does not show ${firstLine === lastLine ? `line ${firstLine}` : `lines ${firstLine}-${lastLine}`} of ${printable(path)}: chartroom run diff ${run} shows it, with the paths that it names`,
        );
      comment.digest = diffs.digestOf(base) ?? "";
      comment.quote = quote;
    }
  }
}

async function readDiff(access: ServerAccess, environmentId: string, base: DiffBase): Promise<PresentDiffs> {
  let digest = "";
  const files = await readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call(access, (options) =>
      clientOf(access, EnvironmentService).getEnvironmentDiff({ environmentId, base, pagination }, options),
    );
    digest = page.digest;
    return { elements: page.files, pagination: page.pagination };
  });
  const all = files.map((file) => ({ base, file }));
  return {
    digestOf: () => digest,
    filesNamed: (paths) => all.filter(({ file }) => paths.has(file.path) || paths.has(file.oldPath)),
    addedFiles: () => all.filter(({ file }) => file.kind === Kind.ADDED),
  };
}

/** Returns the reviews that were sent to a run, in order. @throws StartError */
export function listReviews(access: ServerAccess, agentExecutionId: string): Promise<AgentInput[]> {
  return readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call(access, (options) =>
      clientOf(access, AgentReviewService).listAgentReviews({ agentExecutionId, pagination }, options),
    );
    return { elements: page.reviews, pagination: page.pagination };
  });
}

/** Returns the caller's drafts for a run, oldest first. @throws StartError */
export function listDrafts(access: ServerAccess, agentExecutionId: string): Promise<AgentReviewDraft[]> {
  return readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call(access, (options) =>
      clientOf(access, AgentReviewService).listAgentReviewDrafts({ agentExecutionId, pagination }, options),
    );
    return { elements: page.drafts, pagination: page.pagination };
  });
}

/** Returns reviews as text for people: each comment with its current place, and the state of its lines. */
export function reviewText(inputs: readonly AgentInput[]): string {
  const texts = inputs.map((input) => {
    const parts = input.input.case === "userInput" ? input.input.value.inputs : [];
    const reviews = parts.flatMap((part) => (part.input.case === "review" ? [part.input.value] : []));
    const receipt = AgentInputReceipt[input.receipt].toLowerCase();
    return reviews.map((review) => contentText(`${input.id}  ${receipt}`, review)).join("");
  });
  return texts.join("\n") || "no reviews\n";
}

/** Returns drafts for people. */
export function draftText(drafts: readonly AgentReviewDraft[]): string {
  return (
    drafts.map((draft) => contentText(`${draft.id}  revision ${draft.revision}`, draft)).join("\n") ||
    "no drafts\n"
  );
}

/** Returns reviews as a JSON list of service.v1.AgentInput. */
export function reviewJson(inputs: readonly AgentInput[]): string {
  return jsonText(inputs.map((input) => toJson(AgentInputSchema, input)));
}

/** Returns drafts as a JSON list of service.v1.AgentReviewDraft. */
export function draftJson(drafts: readonly AgentReviewDraft[]): string {
  return jsonText(drafts.map((draft) => toJson(AgentReviewDraftSchema, draft)));
}

function contentText(head: string, { summary, comments }: Pick<AgentReview, "summary" | "comments">): string {
  const lines = [head, ...(summary === "" ? [] : [summary]), ...comments.map(commentText)];
  return `${printable(lines.join("\n"))}\n`;
}

function commentText({ path, firstLine, lastLine, side, text, present }: Comment): string {
  const isFound = present !== undefined && present.path !== "";
  const place = isFound ? present : { path, firstLine, lastLine };
  const lines = place.firstLine === place.lastLine ? place.firstLine : `${place.firstLine}-${place.lastLine}`;
  const state = present ? `  ${State[present.state].toLowerCase()}` : "";
  // A line break in a path would look like another comment.
  const shown = place.path.replaceAll(/[\n\t]/g, "\u{fffd}");
  return `${shown}:${lines}${side === Side.OLD ? " (before)" : ""}${state}\n    ${text.replaceAll("\n", "\n    ")}`;
}

function clientOf<S extends typeof AgentService | typeof AgentReviewService | typeof EnvironmentService>(
  { server }: ServerAccess,
  service: S,
) {
  return createClient(service, createHttpTransport(server));
}
