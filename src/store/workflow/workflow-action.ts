import { type WorkflowExecutionAction, WorkflowExecutionActionSchema } from "#gen/service/v1/workflow_pb.js";
import {
  type CountedPhase,
  countedPhaseOf,
  phaseOf,
} from "../../domain/workflow/execution/workflow-action.ts";
import { isFinalAction } from "../../domain/workflow/execution/workflow-transitions.ts";
import { toJsonObject } from "../json.ts";
import { prepared, preparedForRows, ROWS_PER_RUN } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import { addActionErrors } from "./workflow-action-errors.ts";
import {
  ACTION_COLUMNS,
  type ActionRow,
  actionBody,
  actionOfRow,
  actionProgress,
  changingColumns,
  type FoundAction,
} from "./workflow-action-row.ts";
import { changeCounts } from "./workflow-execution.ts";
import type { WorkflowActionTable } from "./workflow-schema.ts";

export type { FoundAction } from "./workflow-action-row.ts";

const selectAction = prepared<{ id: string; organizationId: string }, ActionRow>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("workflow_action")
      .select(ACTION_COLUMNS)
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function findAction(db: Reader, scope: Scope, id: string): Promise<FoundAction | undefined> {
  const [row] = await selectAction(db, { id, organizationId: scope.organizationId });
  return row && actionOfRow(row);
}

const selectActions = preparedForRows<{ id: string; organizationId: string }, ActionRow>((db, rows) =>
  db
    .selectFrom("workflow_action")
    .select(ACTION_COLUMNS)
    .where(
      "id",
      "in",
      rows.map(({ id }) => id),
    )
    .where("organization_id", "=", rows[0]?.organizationId ?? ""),
);

/** Returns functions that read the actions with these ids from their rows, by id: a broken row fails only its action. */
export async function findActions(
  db: Reader,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<ReadonlyMap<string, () => FoundAction>> {
  const rows = await selectActions(
    db,
    ids.map((id) => ({ id, organizationId })),
  );
  return new Map(rows.map((row) => [row.id, () => actionOfRow(row)]));
}

/**
 * Returns up to `limit` running actions whose maximum time is over at `now`. For the system.
 * @param organizationId of the actions; default any
 */
export async function findExpiredActions(
  db: Reader,
  now: number,
  limit: number,
  organizationId?: string,
): Promise<{ readonly organizationId: string; readonly id: string }[]> {
  return builderOf(db)
    .selectFrom("workflow_action")
    .select(["organization_id as organizationId", "id"])
    .where("stops_at", "<=", now)
    .$if(organizationId !== undefined, (actions) =>
      actions.where("organization_id", "=", organizationId as string),
    )
    .orderBy("stops_at")
    .limit(limit)
    .execute();
}

type NewRow = Omit<
  WorkflowActionTable,
  "environment_id" | "started_at" | "finished_at" | "stops_at" | "outputs"
>;

const insertRows = preparedForRows<NewRow>((db, rows) =>
  db.insertInto("workflow_action").values(
    rows.map((row) => ({
      id: row.id,
      organization_id: row.organization_id,
      workflow_id: row.workflow_id,
      execution_id: row.execution_id,
      is_report: row.is_report,
      phase: row.phase,
      desired_phase: row.desired_phase,
      session: row.session,
      queued: row.queued,
      failed: row.failed,
      attempt: row.attempt,
      progress: row.progress,
      body: row.body,
    })),
  ),
);

/** Writes new actions of one execution, which are pending. */
export async function insertActions(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
  actions: readonly WorkflowExecutionAction[],
): Promise<void> {
  const [first] = actions;
  if (!first) return;
  // What has begun of them is the same for all: nothing.
  const columns = changingColumns(first);
  for (let next = 0; next < actions.length; next += ROWS_PER_RUN) {
    const part = actions.slice(next, next + ROWS_PER_RUN);
    // As objects: the record would have to parse the text.
    const bodies = part.map((action) => toJsonObject(WorkflowExecutionActionSchema, action));
    const rows = part.map((action) => ({
      ...columns,
      session: action.spec?.session ?? "",
      id: action.id,
      organization_id: scope.organizationId,
      workflow_id: action.metadata?.workflowId ?? "",
      execution_id: executionId,
      is_report: action.metadata?.report ? 1 : 0,
      queued: 0,
      body: actionBody(action),
    }));
    await insertRows(tx.db, rows);
    for (const [index, { id }] of part.entries()) {
      tx.record({
        organizationId: scope.organizationId,
        type: "workflow_action",
        id,
        kind: "created",
        after: bodies[index] ?? {},
      });
    }
  }
  await changeCounts(tx, executionId, { ...UNCHANGED, pending: actions.length });
}

type ChangingColumns = ReturnType<typeof changingColumns>;

/** @param fixed columns that every call sets to the same values */
function updateOf(fixed: { readonly queued?: number }) {
  return prepared<ChangingColumns & { id: string; organization_id: string }, unknown>((db, row) =>
    db
      .updateTable("workflow_action")
      .set({
        phase: row.phase,
        desired_phase: row.desired_phase,
        session: row.session,
        failed: row.failed,
        environment_id: row.environment_id,
        started_at: row.started_at,
        finished_at: row.finished_at,
        stops_at: row.stops_at,
        attempt: row.attempt,
        progress: row.progress,
        ...fixed,
      })
      .where("id", "=", row.id)
      .where("organization_id", "=", row.organization_id),
  );
}

const updateRow = updateOf({});

/** An action that has ended leaves the work queue. */
const endRow = updateOf({ queued: 0 });

/** Options of a change of an action. */
export interface ActionUpdateOptions {
  /** True when the same write changes the action again: the change is recorded, and its row is not written yet. */
  readonly isChangedNext?: boolean;
}

/** Changes an action, and with it the counts of its execution. */
export async function updateAction(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecutionAction,
  after: WorkflowExecutionAction,
  { isChangedNext = false }: ActionUpdateOptions = {},
): Promise<void> {
  if (!isChangedNext) {
    const columns = changingColumns(after);
    const update = isFinalAction(phaseOf(after)) ? endRow : updateRow;
    await update(tx.db, { ...columns, id: after.id, organization_id: scope.organizationId });
  }
  const [from, to] = [countedPhaseOf(before), countedPhaseOf(after)];
  if (isFinalAction(phaseOf(after)) && !isFinalAction(phaseOf(before)))
    tx.countOutcome({
      of: "action",
      as: to,
      subject: { organizationId: scope.organizationId, id: after.id, at: tx.now },
    });
  if (from !== to) {
    const change = { ...UNCHANGED, [from]: -1, [to]: 1 };
    await changeCounts(tx, after.metadata?.workflowExecutionId ?? "", change);
  }
  await addActionErrors(tx, after.metadata?.workflowExecutionId ?? "", before, after);
  tx.record({
    organizationId: scope.organizationId,
    type: "workflow_action",
    id: after.id,
    kind: "updated",
    before: toJsonObject(WorkflowExecutionActionSchema, before),
    after: toJsonObject(WorkflowExecutionActionSchema, after),
  });
}

const setProgress = prepared<{ id: string; organizationId: string; progress: string }, unknown>(
  (db, { id, organizationId, progress }) =>
    db
      .updateTable("workflow_action")
      .set({ progress })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Records that steps of an action began. The audit log shows steps when they end. */
export async function setBegunSteps(
  tx: WriteTransaction,
  scope: Scope,
  action: WorkflowExecutionAction,
): Promise<void> {
  const progress = actionProgress(action);
  await setProgress(tx.db, { id: action.id, organizationId: scope.organizationId, progress });
}

const setQueued = preparedForRows<{ id: string; organizationId: string }>((db, rows) =>
  db
    .updateTable("workflow_action")
    .set({ queued: 1 })
    .where(
      "id",
      "in",
      rows.map(({ id }) => id),
    )
    .where("organization_id", "=", rows[0]?.organizationId ?? ""),
);

/** Records that actions are in the work queue; its end resets this. */
export async function markQueued(
  tx: WriteTransaction,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<void> {
  const rows = ids.map((id) => ({ id, organizationId }));
  await setQueued(tx.db, rows);
}

const UNCHANGED: Record<CountedPhase, number> = { pending: 0, running: 0, failed: 0, done: 0, stopped: 0 };
