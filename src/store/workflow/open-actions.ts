import { Principal } from "#gen/service/v1/identity_pb.js";
import { type WorkflowExecutionAction, WorkflowExecutionActionPhase } from "#gen/service/v1/workflow_pb.js";
import { unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import type { Reader, Scope } from "../store.ts";
import { ACTION_COLUMNS, type ActionRow, actionOfRow } from "./workflow-action-row.ts";

interface ExecutionKey {
  readonly organizationId: string;
  readonly executionId: string;
}

const selectWaiting = prepared<ExecutionKey & { limit: number }, ActionRow>(
  (db, { organizationId, executionId, limit }) =>
    db
      .selectFrom("workflow_action")
      .select(ACTION_COLUMNS)
      .where("execution_id", "=", executionId)
      .where(unindexed("workflow_action.organization_id"), "=", organizationId)
      // Literals, so that the engine uses the partial index of these rows.
      .where((eb) =>
        eb.and([
          eb("phase", "=", eb.lit(WorkflowExecutionActionPhase.PENDING)),
          eb("queued", "=", eb.lit(0)),
        ]),
      )
      .orderBy("id")
      .limit(limit),
);

/**
 * Returns up to `limit` actions of an execution that are not in the work queue yet, in their order.
 */
export async function findWaitingActions(
  db: Reader,
  { organizationId }: Scope,
  executionId: string,
  limit: number,
): Promise<WorkflowExecutionAction[]> {
  const rows = await selectWaiting(db, { organizationId, executionId, limit });
  return rows.map(actionOfRow);
}

const selectQueued = prepared<ExecutionKey, ActionRow>((db, { organizationId, executionId }) =>
  db
    .selectFrom("workflow_action")
    .select(ACTION_COLUMNS)
    .where("execution_id", "=", executionId)
    .where(unindexed("workflow_action.organization_id"), "=", organizationId)
    .where((eb) => eb("queued", "=", eb.lit(1)))
    .orderBy("id"),
);

/** Number of waiting actions that are read at a time. */
const WAITING_PER_READ = 16;

/**
 * Yields the actions of an execution that have not ended: those that are in the work queue or on a
 * runner, then those that wait for the queue. The caller must change each action before it reads
 * on: otherwise it is found again.
 */
export async function* findOpenActions(
  db: Reader,
  scope: Scope,
  executionId: string,
): AsyncGenerator<WorkflowExecutionAction> {
  const { organizationId } = scope;
  for (const row of await selectQueued(db, { organizationId, executionId })) yield actionOfRow(row);
  for (;;) {
    const waiting = await findWaitingActions(db, scope, executionId, WAITING_PER_READ);
    yield* waiting;
    if (waiting.length < WAITING_PER_READ) return;
  }
}

const selectQueuedCount = prepared<ExecutionKey, { count: number }>((db, { organizationId, executionId }) =>
  db
    .selectFrom("workflow_action")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("execution_id", "=", executionId)
    .where(unindexed("workflow_action.organization_id"), "=", organizationId)
    .where((eb) => eb("queued", "=", eb.lit(1))),
);

/** Returns the number of an execution's actions that are in the work queue or on a runner. */
export async function countQueuedActions(
  db: Reader,
  { organizationId }: Scope,
  executionId: string,
): Promise<number> {
  const [row] = await selectQueuedCount(db, { organizationId, executionId });
  return row?.count ?? 0;
}

const selectQueue = prepared<
  ExecutionKey,
  { queued: number | null; account_id: string | null; turn: number | null; own_turn: number | null }
>((db, { organizationId, executionId }) =>
  db
    .selectFrom("workflow_execution")
    .select((eb) => [
      eb
        .selectFrom("workflow_action")
        .select((action) => action.fn.countAll<number>().as("count"))
        .where("execution_id", "=", executionId)
        .where((action) => action("queued", "=", action.lit(1)))
        .as("queued"),
      eb
        .selectFrom("member")
        .select("member.account_id")
        .whereRef("member.id", "=", "workflow_execution.executor_id")
        .where(unindexed("member.organization_id"), "=", organizationId)
        .where("workflow_execution.executor_principal", "=", Principal.USER)
        .where("member.left_at", "is", null)
        .as("account_id"),
      eb.selectFrom("work_turn").select("turn").where("organization_id", "=", organizationId).as("turn"),
      eb
        .selectFrom("work")
        .select((work) => work.fn.max("turn").as("turn"))
        .where("group_id", "=", executionId)
        .as("own_turn"),
    ])
    .where("workflow_execution.id", "=", executionId)
    .where(unindexed("workflow_execution.organization_id"), "=", organizationId),
);

/** The work of an execution so far, and the values that its next work gets. */
export interface ExecutionQueue {
  /** Number of its actions that are in the work queue or on a runner. */
  readonly queued: number;
  /**
   * Id of the account that is answerable for its executor, also for one that may not act; null for a service account or
   * a user who left.
   */
  readonly accountId: string | null;
  /** The turn after which its next work follows, as store/runner/work.ts `findLastTurn` returns it. */
  readonly lastTurn: number;
}

/** Returns what the next work of an execution depends on, in one read. */
export async function findExecutionQueue(
  db: Reader,
  { organizationId }: Scope,
  executionId: string,
): Promise<ExecutionQueue> {
  const [row] = await selectQueue(db, { organizationId, executionId });
  return {
    queued: row?.queued ?? 0,
    accountId: row?.account_id ?? null,
    lastTurn: Math.max(0, row?.turn ?? 0, row?.own_turn ?? 0),
  };
}

const selectReport = prepared<ExecutionKey, { id: string }>((db, { organizationId, executionId }) =>
  db
    .selectFrom("workflow_action")
    .select("id")
    .where("execution_id", "=", executionId)
    .where(unindexed("workflow_action.organization_id"), "=", organizationId)
    .where("is_report", "=", 1),
);

export async function hasReportAction(
  db: Reader,
  { organizationId }: Scope,
  executionId: string,
): Promise<boolean> {
  return (await selectReport(db, { organizationId, executionId })).length > 0;
}
