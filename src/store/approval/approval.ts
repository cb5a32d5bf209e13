import { createHash } from "node:crypto";
import { clone } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Approval,
  ApprovalSchema,
  ApprovalKind as Kind,
  ApprovalState as State,
} from "#gen/service/v1/approval_pb.js";
import type { EventFacts } from "../../domain/event-facts.ts";
import { unindexed } from "../expressions.ts";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Found, Reader, Scope, WriteTransaction } from "../store.ts";
import type { ApprovalTable } from "./approval-schema.ts";

/** An approval that was found or requested in the scope of the caller. */
export type FoundApproval = Found<Approval, "approval">;

/** Returns the SHA-256 of a text in UTF-8, in lower-case hexadecimal digits. */
export function digestOf(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Converts a row to an approval. */
export function approvalOfRow({ body }: Pick<ApprovalTable, "body">): FoundApproval {
  return fromBody(ApprovalSchema, body) as FoundApproval;
}

const selectApproval = prepared<{ id: string; organizationId: string }, { body: string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("approval")
      .select("body")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function findApproval(db: Reader, scope: Scope, id: string): Promise<FoundApproval | undefined> {
  const [row] = await selectApproval(db, { id, organizationId: scope.organizationId });
  return row && approvalOfRow(row);
}

/**
 * The requester: an agent execution, a step of an action that asks directly, or an execution of a workflow as a whole.
 */
export type AskerKey =
  | { readonly agentExecutionId: string }
  | { readonly actionId: string }
  | { readonly workflowExecutionId: string };

/** Identifies what an agent execution requests. */
export interface AgentExecutionKey {
  readonly organizationId: string;
  readonly agentExecutionId: string;
}

// With the organization's index the engine would read all approvals of the organization.
const selectPendingOfExecution = prepared<AgentExecutionKey, ApprovalTable>(
  (db, { organizationId, agentExecutionId }) =>
    db
      .selectFrom("approval")
      .selectAll()
      .where("agent_execution_id", "=", agentExecutionId)
      .where(unindexed("approval.phase"), "=", State.PENDING)
      .where(unindexed("approval.organization_id"), "=", organizationId)
      .orderBy("id"),
);

const selectPendingOfAction = prepared<{ organizationId: string; actionId: string }, ApprovalTable>(
  (db, { organizationId, actionId }) =>
    db
      .selectFrom("approval")
      .selectAll()
      .where("action_id", "=", actionId)
      .where(unindexed("approval.phase"), "=", State.PENDING)
      .where(unindexed("approval.organization_id"), "=", organizationId)
      .orderBy("id"),
);

const selectPendingOfWhole = prepared<{ organizationId: string; workflowExecutionId: string }, ApprovalTable>(
  (db, { organizationId, workflowExecutionId }) =>
    db
      .selectFrom("approval")
      .selectAll()
      .where("workflow_execution_id", "=", workflowExecutionId)
      .where("action_id", "is", null)
      .where("agent_execution_id", "is", null)
      .where(unindexed("approval.phase"), "=", State.PENDING)
      .where(unindexed("approval.organization_id"), "=", organizationId)
      .orderBy("id"),
);

/** Returns the undecided approvals of a requester, oldest first. */
export async function findPendingApprovals(
  db: Reader,
  { organizationId }: Scope,
  asker: AskerKey,
): Promise<FoundApproval[]> {
  return (await selectPending(db, organizationId, asker)).map(approvalOfRow);
}

function selectPending(db: Reader, organizationId: string, asker: AskerKey): Promise<ApprovalTable[]> {
  if ("actionId" in asker) return selectPendingOfAction(db, { organizationId, actionId: asker.actionId });
  if ("workflowExecutionId" in asker)
    return selectPendingOfWhole(db, { organizationId, workflowExecutionId: asker.workflowExecutionId });
  return selectPendingOfExecution(db, { organizationId, agentExecutionId: asker.agentExecutionId });
}

const selectOfToolCall = prepared<AgentExecutionKey & { toolCallId: string }, ApprovalTable>(
  (db, { organizationId, agentExecutionId, toolCallId }) =>
    db
      .selectFrom("approval")
      .selectAll()
      .where("agent_execution_id", "=", agentExecutionId)
      .where("tool_call_id", "=", toolCallId)
      .where(unindexed("approval.organization_id"), "=", organizationId)
      .orderBy("id"),
);

/** Returns the approvals that an agent execution has requested under the id of a tool call, oldest first. */
export async function findApprovalsOfToolCall(
  db: Reader,
  { organizationId }: Scope,
  agentExecutionId: string,
  toolCallId: string,
): Promise<FoundApproval[]> {
  return (await selectOfToolCall(db, { organizationId, agentExecutionId, toolCallId })).map(approvalOfRow);
}

const selectOfStep = prepared<{ organizationId: string; actionId: string; stepIndex: number }, ApprovalTable>(
  (db, { organizationId, actionId, stepIndex }) =>
    db
      .selectFrom("approval")
      .selectAll()
      .where("action_id", "=", actionId)
      .where("step_index", "=", stepIndex)
      .where(unindexed("approval.organization_id"), "=", organizationId),
);

/** Returns the approval that an approval step of an action has requested, in any attempt. */
export async function findApprovalOfStep(
  db: Reader,
  { organizationId }: Scope,
  actionId: string,
  stepIndex: number,
): Promise<FoundApproval | undefined> {
  const [row] = await selectOfStep(db, { organizationId, actionId, stepIndex });
  return row && approvalOfRow(row);
}

/** Returns the ids of the pending approvals of agent executions, by the id of the execution, oldest first. */
export async function findPendingApprovalIds(
  db: Reader,
  scope: Scope,
  agentExecutionIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (agentExecutionIds.length === 0) return new Map();
  const rows = await builderOf(db)
    .selectFrom("approval")
    .select(["id", "agent_execution_id"])
    // With the organization's index the engine would read all pending approvals of the organization.
    .where(unindexed("approval.organization_id"), "=", scope.organizationId)
    .where("phase", "=", State.PENDING)
    .where("agent_execution_id", "in", agentExecutionIds)
    .orderBy("id")
    .execute();
  const groups = Map.groupBy(rows, (row) => row.agent_execution_id ?? "");
  return new Map([...groups].map(([key, found]) => [key, found.map(({ id }) => id)]));
}

/** Writes a new approval. @param isShared true when every member may read it */
export async function insertApproval(
  tx: WriteTransaction,
  scope: Scope,
  approval: Approval,
  isShared: boolean,
): Promise<FoundApproval> {
  const { asker, creator } = approval;
  const stepIndex = asker?.stepIndex;
  // A step may request another push when the content to push has changed.
  const mayAskAgain = approval.kind === Kind.PUSH;
  await builderOf(tx.db)
    .insertInto("approval")
    .values({
      id: approval.id,
      organization_id: scope.organizationId,
      phase: approval.state,
      agent_execution_id: asker?.agentExecutionId || null,
      tool_call_id: asker?.toolCallId || null,
      digest: approval.digest,
      workflow_execution_id: asker?.workflowExecutionId || null,
      action_id: stepIndex === undefined ? null : asker?.workflowActionId || null,
      step_index: mayAskAgain ? null : (stepIndex ?? null),
      environment_id: asker?.environmentId || null,
      creator_id: creator?.id ?? "",
      creator_principal: creator?.principal ?? 0,
      is_shared: isShared ? 1 : 0,
      expires_at: approval.expiresAt ? timestampMs(approval.expiresAt) : tx.now,
      body: toBody(ApprovalSchema, approval),
    })
    .execute();
  const { userIds = [], groupIds = [] } = approval.deciders ?? {};
  for (const user_id of new Set([...userIds, ...groupIds])) {
    await builderOf(tx.db)
      .insertInto("approval_decider")
      .values({ approval_id: approval.id, user_id })
      .execute();
  }
  touchAsker(tx, approval);
  tx.record({
    ...changeOf(scope, approval),
    kind: "created",
    operation: "approval/asked",
    after: recordOf(approval),
  });
  return approval as FoundApproval;
}

/** Names of decisions in the audit log, by the state of the approval. */
const OPERATIONS: Readonly<Partial<Record<State, string>>> = {
  [State.APPROVED]: "approval/approved",
  [State.DENIED]: "approval/denied",
  [State.EXPIRED]: "approval/expired",
  [State.CANCELLED]: "approval/cancelled",
};

/** Changes an approval: adds a decision, or ends it. */
export async function updateApproval(
  tx: WriteTransaction,
  scope: Scope,
  before: FoundApproval,
  after: Approval,
): Promise<FoundApproval> {
  await builderOf(tx.db)
    .updateTable("approval")
    .set({ phase: after.state, body: toBody(ApprovalSchema, after) })
    .where("id", "=", before.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  touchAsker(tx, after);
  tx.record({
    ...changeOf(scope, after),
    kind: "updated",
    // When several approvals are needed, one of them leaves it pending.
    operation: OPERATIONS[after.state] ?? "approval/approved",
    reason:
      after.decisions.length > before.decisions.length
        ? (after.decisions.at(-1)?.reason ?? "")
        : after.reason,
    before: recordOf(before),
    after: recordOf(after),
  });
  return after as FoundApproval;
}

const selectExpired = prepared<{ now: number; limit: number }, { id: string; organizationId: string }>(
  (db, { now, limit }) =>
    db
      .selectFrom("approval")
      .select(["id", "organization_id as organizationId"])
      .where((eb) => eb("phase", "=", eb.lit(State.PENDING)))
      .where("expires_at", "<=", now)
      .orderBy("expires_at")
      .limit(limit),
);

/** Returns up to `limit` pending approvals that have timed out. For jobs, so without a scope. */
export async function findExpiredApprovals(
  db: Reader,
  now: number,
  limit: number,
): Promise<(Scope & { readonly id: string })[]> {
  return selectExpired(db, { now, limit });
}

/** Returns the facts of a change of an approval. */
export function changeOf({ organizationId }: Scope, { id, creator }: Approval) {
  const facts: Partial<EventFacts> = { creatorId: creator?.id ?? null, ownerId: creator?.id ?? null };
  return { organizationId, type: "approval", id, facts } as const;
}

/**
 * Returns the parts of an approval that the audit log keeps: the request itself stays in the approval, which can be
 * removed.
 */
export function recordOf(approval: Approval): string {
  const kept = clone(ApprovalSchema, approval);
  kept.title = "";
  kept.requestJson = "";
  kept.answerJson = "";
  kept.options = [];
  return toBody(ApprovalSchema, kept);
}

/** Wakes the listeners of the agent execution, whose status includes pending approvals. */
function touchAsker(tx: WriteTransaction, { asker }: Approval): void {
  if (asker?.agentExecutionId) tx.touch(asker.agentExecutionId);
}
