import type { ApprovalState } from "#gen/service/v1/approval_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRowsInPhases } from "../first-rows.ts";
import { isSharedExecution } from "../identity/shared-execution.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";
import { approvalOfRow, type FoundApproval } from "./approval.ts";

/**
 * The conditions of a list of approvals: fields combine with AND, values inside one with OR; empty
 * means any.
 */
export interface ApprovalFilter {
  readonly states: readonly ApprovalState[];
  readonly agentExecutionIds: readonly string[];
  readonly workflowExecutionIds: readonly string[];
  /** Subject whose readable approvals are listed; undefined for one that may read all. */
  readonly reader: ApprovalReader | undefined;
}

/** A subject, and its groups. */
export interface ApprovalReader extends Pick<Subject, "id" | "principal"> {
  readonly groupIds: readonly string[];
  /** Those groups whose shared agent executions it may read. */
  readonly sharingGroupIds: readonly string[];
}

/** Returns up to `limit` approvals after `after`, the newest first. */
export async function findApprovalPage(
  db: Reader,
  scope: Scope,
  filter: ApprovalFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<FoundApproval>[]> {
  const own = builderOf(db)
    .selectFrom("approval")
    .select(["id", ...bodyColumns("approval")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  let query = own;
  if (filter.reader) {
    const { id, principal, groupIds, sharingGroupIds } = filter.reader;
    query = query.where((eb) =>
      eb.or([
        eb("is_shared", "=", 1),
        eb.and([eb("creator_id", "=", id), eb("creator_principal", "=", principal)]),
        eb.exists(
          eb
            .selectFrom("approval_decider")
            .select("approval_decider.user_id")
            .whereRef("approval_decider.approval_id", "=", "approval.id")
            .where("approval_decider.user_id", "in", [id, ...groupIds]),
        ),
        ...(sharingGroupIds.length > 0
          ? [isSharedExecution("approval.agent_execution_id", sharingGroupIds)]
          : []),
      ]),
    );
  }
  if (filter.agentExecutionIds.length > 0)
    query = query.where("agent_execution_id", "in", filter.agentExecutionIds);
  if (filter.workflowExecutionIds.length > 0)
    query = query.where("workflow_execution_id", "in", filter.workflowExecutionIds);
  const order = { direction: "desc", after } as const;
  const rows = await firstRowsInPhases("approval", own, query, filter.states, order, limit);
  return listedRows(db, "approval", rows, positionById, approvalOfRow);
}

const selectShared = prepared<{ id: string; organizationId: string }, { isShared: number }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("approval")
      .select("is_shared as isShared")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Returns whether every member may read an approval. */
export async function isSharedApproval(db: Reader, { organizationId }: Scope, id: string): Promise<boolean> {
  return (await selectShared(db, { id, organizationId }))[0]?.isShared === 1;
}
