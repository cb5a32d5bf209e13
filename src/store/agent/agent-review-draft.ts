import {
  type AgentReviewDraft as Draft,
  AgentReviewDraftSchema as DraftSchema,
} from "#gen/service/v1/agent_review_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline, unindexed } from "../expressions.ts";
import { firstOfFew } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import type { AgentReviewDraftTable } from "./agent-schema.ts";

/** The author of drafts, within its organization. */
export interface Author extends Scope {
  readonly subject: { readonly id: string; readonly principal: number };
}

type AuthorKey = { organizationId: string; authorId: string; principal: number };

const keyOf = ({ organizationId, subject }: Author): AuthorKey => ({
  organizationId,
  authorId: subject.id,
  principal: subject.principal,
});

const selectDraft = prepared<AuthorKey & { id: string }, Pick<AgentReviewDraftTable, "body">>(
  (db, { id, organizationId, authorId, principal }) =>
    db
      .selectFrom("agent_review_draft")
      .select("body")
      .where("id", "=", id)
      .where(unindexed("agent_review_draft.organization_id"), "=", organizationId)
      .where(unindexed("agent_review_draft.author_id"), "=", authorId)
      .where(unindexed("agent_review_draft.author_principal"), "=", principal),
);

/** Returns a draft of its author; undefined if it does not exist or belongs to another author. */
export async function findReviewDraft(db: Reader, author: Author, id: string): Promise<Draft | undefined> {
  const [row] = await selectDraft(db, { ...keyOf(author), id });
  return row && fromBody(DraftSchema, row.body);
}

/** Returns drafts of their author for an execution, the oldest first. */
export async function findReviewDraftPage(
  db: Reader,
  author: Author,
  executionId: Handle<"agent_execution">,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Draft>[]> {
  const query = builderOf(db)
    .selectFrom("agent_review_draft")
    .select(["id", ...bodyColumns("agent_review_draft")])
    .where(checkDeadline())
    .where("execution_id", "=", executionId)
    .where("author_id", "=", author.subject.id)
    .where(unindexed("agent_review_draft.author_principal"), "=", author.subject.principal)
    .where(unindexed("agent_review_draft.organization_id"), "=", author.organizationId);
  const order = {
    columns: ["agent_review_draft.id"],
    direction: "asc",
    after: after && [after.id],
  } as const;
  const rows = await firstOfFew(query, order, limit);
  return listedRows(db, "agent_review_draft", rows, positionById, ({ body }) => fromBody(DraftSchema, body));
}

const countRows = prepared<AuthorKey & { executionId: string }, { count: number }>(
  (db, { executionId, organizationId, authorId, principal }) =>
    db
      .selectFrom("agent_review_draft")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("execution_id", "=", executionId)
      .where("author_id", "=", authorId)
      .where(unindexed("agent_review_draft.author_principal"), "=", principal)
      .where(unindexed("agent_review_draft.organization_id"), "=", organizationId),
);

/** Returns the number of drafts that an author has for an execution. */
export async function countReviewDrafts(
  db: Reader,
  author: Author,
  executionId: Handle<"agent_execution">,
): Promise<number> {
  const [row] = await countRows(db, { ...keyOf(author), executionId });
  return Number(row?.count ?? 0);
}

const insertRow = prepared<AgentReviewDraftTable, unknown>((db, row) =>
  db.insertInto("agent_review_draft").values({
    id: row.id,
    organization_id: row.organization_id,
    execution_id: row.execution_id,
    author_id: row.author_id,
    author_principal: row.author_principal,
    body: row.body,
  }),
);

/** Writes a new draft. Drafts are private notes of their author and are not recorded. */
export async function insertReviewDraft(tx: WriteTransaction, author: Author, draft: Draft): Promise<void> {
  await insertRow(tx.db, {
    id: draft.id,
    organization_id: author.organizationId,
    execution_id: draft.agentExecutionId,
    author_id: author.subject.id,
    author_principal: author.subject.principal,
    body: toBody(DraftSchema, draft),
  });
}

const setBody = prepared<{ id: string; organizationId: string; body: string }, unknown>(
  (db, { id, organizationId, body }) =>
    db
      .updateTable("agent_review_draft")
      .set({ body })
      .where("id", "=", id)
      .where(unindexed("agent_review_draft.organization_id"), "=", organizationId),
);

/** Replaces a draft that was found. */
export async function updateReviewDraft(tx: WriteTransaction, scope: Scope, draft: Draft): Promise<void> {
  const { organizationId } = scope;
  await setBody(tx.db, { id: draft.id, organizationId, body: toBody(DraftSchema, draft) });
}

const deleteRow = prepared<{ id: string; organizationId: string }, unknown>((db, { id, organizationId }) =>
  db
    .deleteFrom("agent_review_draft")
    .where("id", "=", id)
    .where(unindexed("agent_review_draft.organization_id"), "=", organizationId),
);

/** Removes a draft that was found. */
export async function removeReviewDraft(tx: WriteTransaction, scope: Scope, id: string): Promise<void> {
  await deleteRow(tx.db, { id, organizationId: scope.organizationId });
}

const deleteRowsOf = prepared<{ organizationId: string; authorId: string }, unknown>(
  (db, { organizationId, authorId }) =>
    db
      .deleteFrom("agent_review_draft")
      .where("organization_id", "=", organizationId)
      .where("author_id", "=", authorId),
);

/** Removes all drafts of a member who leaves the organization. */
export async function removeReviewDraftsOf(
  tx: WriteTransaction,
  { organizationId }: Scope,
  authorId: string,
): Promise<void> {
  await deleteRowsOf(tx.db, { organizationId, authorId });
}
