import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type WorkflowExecution, WorkflowExecutionPhase } from "#gen/service/v1/workflow_pb.js";
import { type WorkflowPlan, withoutPlan, withPlan } from "../../domain/workflow/execution/workflow-plan.ts";
import { sourceSettersOf } from "../identity/source-setter.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import {
  changingColumns,
  EXECUTION_COLUMNS,
  executionBody,
  executionOfRow,
  recordedExecution,
  responseExecution,
} from "./workflow-execution-row.ts";
import { findPlan, insertPlan } from "./workflow-plan.ts";
import type { WorkflowExecutionTable } from "./workflow-schema.ts";

/** An execution with the values that no response contains. */
export interface StoredExecution {
  /** With its counts. */
  readonly execution: WorkflowExecution;
  /** Index of the trigger in the workflow's list when it fired; null for a start with a context of its own. */
  readonly triggerIndex: number | null;
  /** Returns the execution as responses show it. */
  readonly toResponse: () => WorkflowExecution;
  /** True when its actions have been created. */
  readonly expanded: boolean;
  /** Environment variables from which commands read parameters. */
  readonly variables: Readonly<Record<string, string>>;
  /** The setters of the source that its context names. */
  readonly sourceSetBy: readonly Subject[];
}

const STORED_COLUMNS = [
  ...EXECUTION_COLUMNS,
  "trigger_index",
  "expanded",
  "variables",
  "source_set_by",
] as const;

type StoredRow = Pick<WorkflowExecutionTable, (typeof STORED_COLUMNS)[number]>;

function storedOfRow(row: StoredRow, plan: WorkflowPlan = {}): StoredExecution {
  const execution = withPlan(executionOfRow(row), plan);
  return {
    execution,
    toResponse: () => withPlan(responseExecution(row), plan),
    triggerIndex: row.trigger_index,
    expanded: row.expanded === 1,
    variables: JSON.parse(row.variables),
    sourceSetBy: sourceSettersOf(row.source_set_by, execution),
  };
}

const selectExecution = prepared<{ id: string; organizationId: string }, StoredRow>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("workflow_execution")
      .select(STORED_COLUMNS)
      .where("id", "=", id)
      .where("organization_id", "=", organizationId)
      .where("removed_at", "is", null),
);

/**
 * Returns an execution without its plan: its trigger is unset, and its action and report have
 * limits but no steps.
 */
export async function findExecution(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<StoredExecution | undefined> {
  const [row] = await selectExecution(db, { id, organizationId: scope.organizationId });
  return row && storedOfRow(row);
}

/** Returns an execution with its plan, which may be megabytes large and must not be modified. */
export async function findWholeExecution(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<StoredExecution | undefined> {
  const [row] = await selectExecution(db, { id, organizationId: scope.organizationId });
  return row && storedOfRow(row, await findPlan(db, scope, id));
}

/**
 * The conditions for executions that have not ended; a field that is left out restricts nothing.
 */
export interface OpenExecutions {
  readonly workflowId?: string;
  /** Index of the time or pull-request trigger that started them. */
  readonly triggerIndex?: number;
  readonly executorId?: string;
}

/** Returns the ids of the executions that have not ended, oldest first. */
export async function findOpenExecutionIds(
  db: Reader,
  scope: Scope,
  { workflowId, triggerIndex, executorId }: OpenExecutions,
): Promise<string[]> {
  let query = builderOf(db)
    .selectFrom("workflow_execution")
    .select("id")
    .where("organization_id", "=", scope.organizationId)
    .where("finished_at", "is", null);
  if (workflowId !== undefined) query = query.where("workflow_id", "=", workflowId);
  if (triggerIndex !== undefined) query = query.where("trigger_index", "=", triggerIndex);
  if (executorId !== undefined) query = query.where("executor_id", "=", executorId);
  const rows = await query.execute();
  // Sorted here: with an order in the query, the engine scans all executions that ever ran.
  return rows.map(({ id }) => id).sort();
}

const insertRow = prepared<WorkflowExecutionTable, unknown>((db, row) =>
  db.insertInto("workflow_execution").values({
    id: row.id,
    organization_id: row.organization_id,
    workflow_id: row.workflow_id,
    trigger_index: row.trigger_index,
    trigger_kind: row.trigger_kind,
    creator_id: row.creator_id,
    executor_id: row.executor_id,
    executor_principal: row.executor_principal,
    phase: row.phase,
    desired_phase: row.desired_phase,
    expanded: row.expanded,
    failed: row.failed,
    pending_count: row.pending_count,
    running_count: row.running_count,
    failed_count: row.failed_count,
    done_count: row.done_count,
    stopped_count: row.stopped_count,
    started_at: row.started_at,
    finished_at: row.finished_at,
    search_text: row.search_text,
    variables: row.variables,
    action_failures: row.action_failures,
    action_warnings: row.action_warnings,
    retried_execution_id: row.retried_execution_id,
    session: row.session,
    progress: row.progress,
    body: row.body,
  }),
);

/** Writes a new execution, whose actions are not created yet. */
export async function insertExecution(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  facts: Pick<StoredExecution, "triggerIndex" | "variables"> & { readonly searchText: string },
): Promise<void> {
  const { metadata, spec } = execution;
  const columns = changingColumns(execution);
  await insertRow(tx.db, {
    ...columns,
    id: execution.id,
    organization_id: scope.organizationId,
    workflow_id: metadata?.workflowId ?? "",
    trigger_index: facts.triggerIndex,
    trigger_kind: triggerKind(spec?.trigger?.trigger.case),
    creator_id: metadata?.creator?.id ?? "",
    executor_id: metadata?.executor?.id ?? "",
    executor_principal: metadata?.executor?.principal ?? 0,
    expanded: 0,
    failed: 0,
    pending_count: 0,
    running_count: 0,
    failed_count: 0,
    done_count: 0,
    stopped_count: 0,
    started_at: metadata?.startedAt ? timestampMs(metadata.startedAt) : tx.now,
    search_text: facts.searchText,
    variables: JSON.stringify(facts.variables),
    action_failures: "[]",
    action_warnings: "[]",
    retried_execution_id: metadata?.retriedExecutionId || null,
    body: executionBody(execution),
  });
  await insertPlan(tx, scope, execution);
  tx.record({
    organizationId: scope.organizationId,
    type: "workflow_execution",
    id: execution.id,
    kind: "created",
    after: recordedExecution(execution),
  });
}

type ChangingColumns = ReturnType<typeof changingColumns>;

const updateRow = prepared<ChangingColumns & { id: string; organization_id: string }, unknown>((db, row) =>
  db
    .updateTable("workflow_execution")
    .set({
      phase: row.phase,
      desired_phase: row.desired_phase,
      session: row.session,
      finished_at: row.finished_at,
      progress: row.progress,
    })
    .where("id", "=", row.id)
    .where("organization_id", "=", row.organization_id),
);

const setFailed = prepared<{ id: string }, unknown>((db, { id }) =>
  db.updateTable("workflow_execution").set({ failed: 1 }).where("id", "=", id),
);

export async function updateExecution(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecution,
  after: WorkflowExecution,
): Promise<void> {
  const columns = changingColumns(after);
  await updateRow(tx.db, { ...columns, id: after.id, organization_id: scope.organizationId });
  if ((after.status?.failures.length ?? 0) > 0) await setFailed(tx.db, { id: after.id });
  if (after.metadata?.finishedAt && !before.metadata?.finishedAt)
    tx.countOutcome({
      of: "workflow execution",
      as: endOf(after),
      subject: { organizationId: scope.organizationId, id: after.id, at: tx.now },
    });
  tx.record({
    organizationId: scope.organizationId,
    type: "workflow_execution",
    id: after.id,
    kind: "updated",
    before: recordedExecution(withoutPlan(before)),
    after: recordedExecution(withoutPlan(after)),
  });
}

/** Returns how an execution ended. */
function endOf({ status }: WorkflowExecution): "failed" | "stopped" | "done" {
  if (status?.phase === WorkflowExecutionPhase.STOPPED) return "stopped";
  const hasFailed = (status?.failedActionCount ?? 0) > 0 || (status?.failures.length ?? 0) > 0;
  return hasFailed ? "failed" : "done";
}

const markExpansion = prepared<{ id: string; organizationId: string; expanded: number }, unknown>(
  (db, { id, organizationId, expanded }) =>
    db
      .updateTable("workflow_execution")
      .set({ expanded })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

const EXPANSIONS = { none: 0, done: 1, asking: 2 } as const;

/** Records whether an execution's actions are yet to be created, exist, or wait for an approval of their creation. */
export async function setExpansion(
  tx: WriteTransaction,
  { organizationId }: Scope,
  id: string,
  expansion: keyof typeof EXPANSIONS,
): Promise<void> {
  await markExpansion(tx.db, { id, organizationId, expanded: EXPANSIONS[expansion] });
}

/** Records that an execution's actions have been created, or never will be. */
export async function setExpanded(tx: WriteTransaction, scope: Scope, id: string): Promise<void> {
  await setExpansion(tx, scope, id, "done");
}

/** The difference of each count of an execution. */
export type CountChange = Readonly<Record<"pending" | "running" | "failed" | "done" | "stopped", number>>;

const addCounts = prepared<CountChange & { id: string }, unknown>((db, change) =>
  db
    .updateTable("workflow_execution")
    .set((eb) => ({
      pending_count: eb("pending_count", "+", change.pending),
      running_count: eb("running_count", "+", change.running),
      failed_count: eb("failed_count", "+", change.failed),
      done_count: eb("done_count", "+", change.done),
      stopped_count: eb("stopped_count", "+", change.stopped),
    }))
    .where("id", "=", change.id),
);

/** Updates the counts after a change of actions; only workflow-action.ts changes actions. */
export async function changeCounts(tx: WriteTransaction, id: string, change: CountChange): Promise<void> {
  await addCounts(tx.db, { ...change, id });
  if (change.failed > 0) await setFailed(tx.db, { id });
}

function triggerKind(kind: "manual" | "time" | "pullRequest" | undefined) {
  return kind === "pullRequest" ? "pull_request" : (kind ?? "manual");
}
