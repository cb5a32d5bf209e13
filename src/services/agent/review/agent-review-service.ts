import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type AgentReviewDraft, AgentReviewDraftSchema } from "#gen/service/v1/agent_review_pb.js";
import type {
  AgentReviewService as Contract,
  CreateAgentReviewDraftRequest,
  DeleteAgentReviewDraftRequest,
  ListAgentReviewDraftsRequest,
  ListAgentReviewsRequest,
  UpdateAgentReviewDraftRequest,
} from "#gen/service/v1/agent_review_service_pb.js";
import { DiffBase } from "#gen/service/v1/environment_changes_pb.js";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import { keptContent, requireDraftRevision, requireDraftSpace } from "../../../domain/agent/review/review.ts";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import type { StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findReviewPage } from "../../../store/agent/agent-input-list.ts";
import {
  countReviewDrafts,
  findReviewDraft,
  findReviewDraftPage,
  insertReviewDraft,
  removeReviewDraft,
  updateReviewDraft,
} from "../../../store/agent/agent-review-draft.ts";
import type { Reader, WriteTransaction } from "../../../store/store.ts";
import { callerOf, writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { listPage } from "../../call/page.ts";
import { requireOwnershipOrRole } from "../../policy/shared-role.ts";
import { getReadableAgentExecution } from "../reading/agent-reading.ts";
import { findPresentDiffs } from "./present-diffs.ts";
import { addPresent, reviewOf } from "./sent-review.ts";

/** Serves reviews of agent executions' changes, and drafts of reviews. */
export class AgentReviewService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  async listAgentReviews({ agentExecutionId: id, pagination }: ListAgentReviewsRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const db = this.#deps.store.reader;
    const { execution, environmentId } = await getReadableAgentExecution(db, caller, id);
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListAgentReviews",
      parts: [{ id }],
      pagination,
      find: (lister, after, limit) => findReviewPage(lister, execution.id, after?.key, limit),
    });
    const diffs = await findPresentDiffs(db, caller, environmentId);
    for (const each of rows) await addPresent(reviewOf(each)?.comments ?? [], diffs);
    return { ...page, reviews: rows, digest: diffs.digestOf(DiffBase.ENVIRONMENT) ?? "" };
  }

  createAgentReviewDraft(req: CreateAgentReviewDraftRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const { execution, environmentId } = await getReviewable(tx.db, ctx, caller, req.agentExecutionId);
      requireDraftSpace(await countReviewDrafts(tx.db, caller, execution.id));
      const now = timestampFromMs(tx.now);
      const draft = create(AgentReviewDraftSchema, {
        id: tx.newId(),
        agentExecutionId: execution.id,
        revision: 1n,
        createdAt: now,
        updatedAt: now,
        ...keptContent(req, await findPresentDiffs(tx.db, caller, environmentId), {}),
      });
      await insertReviewDraft(tx, caller, draft);
      return { draft };
    });
  }

  updateAgentReviewDraft(req: UpdateAgentReviewDraftRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getOwnDraft(tx, caller, req.draftId);
      const { environmentId } = await getReviewable(tx.db, ctx, caller, before.agentExecutionId);
      requireDraftRevision(before, req.revision);
      const diffs = await findPresentDiffs(tx.db, caller, environmentId);
      const draft = create(AgentReviewDraftSchema, {
        ...before,
        revision: before.revision + 1n,
        updatedAt: timestampFromMs(tx.now),
        ...keptContent(req, diffs, { before: before.comments }),
      });
      await updateReviewDraft(tx, caller, draft);
      return { draft };
    });
  }

  async listAgentReviewDrafts(
    { agentExecutionId: id, pagination }: ListAgentReviewDraftsRequest,
    ctx: HandlerContext,
  ) {
    const caller = callerOf(ctx);
    const db = this.#deps.store.reader;
    const { execution, environmentId } = await getReviewable(db, ctx, caller, id);
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListAgentReviewDrafts",
      parts: [{ id, author: caller.subject.id }],
      pagination,
      find: (lister, after, limit) => findReviewDraftPage(lister, caller, execution.id, after, limit),
    });
    const diffs = await findPresentDiffs(db, caller, environmentId);
    for (const { comments } of rows) await addPresent(comments, diffs);
    return { ...page, drafts: rows };
  }

  deleteAgentReviewDraft({ draftId }: DeleteAgentReviewDraftRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const draft = await getOwnDraft(tx, caller, draftId);
      await removeReviewDraft(tx, caller, draft.id);
      return {};
    });
  }
}

/**
 * Returns an agent execution that the caller may send to.
 *
 * @throws DomainError NOT_FOUND, also when the caller may not read it; PERMISSION_DENIED when the caller is neither
 * its creator nor has the role through a group
 */
async function getReviewable(
  db: Reader,
  ctx: HandlerContext,
  caller: Caller,
  id: string,
): Promise<StoredAgentExecution> {
  const stored = await getReadableAgentExecution(db, caller, id);
  const needed = { type: "agent_execution", id: stored.execution.id, role: ResourceRole.USE } as const;
  await requireOwnershipOrRole(db, ctx, caller, needed, stored.execution.metadata?.creator);
  return stored;
}

/** Returns a draft of the caller. @throws DomainError NOT_FOUND, also for the draft of somebody else */
async function getOwnDraft(tx: WriteTransaction, caller: Caller, id: string): Promise<AgentReviewDraft> {
  const draft = await findReviewDraft(tx.db, caller, id);
  if (!draft) throw notFound("agent review draft");
  return draft;
}
