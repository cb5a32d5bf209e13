import { equals } from "@bufbuild/protobuf";
import { type Workflow, type WorkflowTrigger, WorkflowTriggerSchema } from "#gen/service/v1/workflow_pb.js";
import { nextInstant } from "../../domain/project/schedule.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { WorkflowScheduleTable } from "./workflow-schema.ts";

/** A time trigger that is due at its next instant, as it is stored. */
export type StoredSchedule = WorkflowScheduleTable;

const deleteSchedules = prepared<{ workflowId: string }, unknown>((db, { workflowId }) =>
  db.deleteFrom("workflow_schedule").where("workflow_id", "=", workflowId),
);

/**
 * Updates the instants of a workflow's time triggers. Where the triggers have not changed they
 * stay, so that no due instant is lost; otherwise they are computed from now. A disabled workflow
 * has its instants too: each is entered in the ledger, and starts nothing.
 */
export async function replaceSchedules(
  tx: WriteTransaction,
  scope: Scope,
  workflow: Workflow,
  before?: Workflow,
): Promise<void> {
  if (before && !changesSchedule(before, workflow)) return;
  await deleteSchedules(tx.db, { workflowId: workflow.id });
  const rows = workflow.spec?.deleting ? [] : schedulesOf(scope, workflow, tx.now);
  if (rows.length > 0) await builderOf(tx.db).insertInto("workflow_schedule").values(rows).execute();
}

/**
 * Returns up to `limit` time triggers that are due at `now`, of all organizations, the longest due
 * first. For the system.
 */
export async function findDueSchedules(
  db: Reader,
  now: number,
  limit: number,
): Promise<WorkflowScheduleTable[]> {
  return builderOf(db)
    .selectFrom("workflow_schedule")
    .selectAll()
    .where("next_at", "<=", now)
    .orderBy("next_at")
    .orderBy("workflow_id")
    .orderBy("trigger_index")
    .limit(limit)
    .execute();
}

const selectSchedule = prepared<
  { organizationId: string; workflowId: string; triggerIndex: number },
  WorkflowScheduleTable
>((db, { organizationId, workflowId, triggerIndex }) =>
  db
    .selectFrom("workflow_schedule")
    .selectAll()
    .where("workflow_id", "=", workflowId)
    .where("trigger_index", "=", triggerIndex)
    .where("organization_id", "=", organizationId),
);

/** Returns the current state of a time trigger; undefined when it is never due again. */
export async function findSchedule(
  db: Reader,
  { organizationId }: Scope,
  { workflow_id, trigger_index }: Pick<WorkflowScheduleTable, "workflow_id" | "trigger_index">,
): Promise<WorkflowScheduleTable | undefined> {
  const [row] = await selectSchedule(db, {
    organizationId,
    workflowId: workflow_id,
    triggerIndex: trigger_index,
  });
  return row;
}

/**
 * Sets the time at which a time trigger is due next; undefined removes it, since it never is again.
 */
export async function setNextInstant(
  tx: WriteTransaction,
  { organizationId }: Scope,
  schedule: Pick<WorkflowScheduleTable, "workflow_id" | "trigger_index">,
  nextAt: number | undefined,
): Promise<void> {
  const { workflow_id, trigger_index } = schedule;
  if (nextAt === undefined) {
    await builderOf(tx.db)
      .deleteFrom("workflow_schedule")
      .where("workflow_id", "=", workflow_id)
      .where("trigger_index", "=", trigger_index)
      .where("organization_id", "=", organizationId)
      .execute();
    return;
  }
  await builderOf(tx.db)
    .updateTable("workflow_schedule")
    .set({ next_at: nextAt })
    .where("workflow_id", "=", workflow_id)
    .where("trigger_index", "=", trigger_index)
    .where("organization_id", "=", organizationId)
    .execute();
}

function changesSchedule({ spec: before }: Workflow, { spec: after }: Workflow): boolean {
  const [old, fresh] = [before?.triggers ?? [], after?.triggers ?? []];
  if (before?.disabled !== after?.disabled || before?.deleting !== after?.deleting) return true;
  if (old.length !== fresh.length) return true;
  return old.some((each, index) => !equals(WorkflowTriggerSchema, each, fresh[index] as WorkflowTrigger));
}

function schedulesOf(scope: Scope, { id, spec }: Workflow, now: number): WorkflowScheduleTable[] {
  return (spec?.triggers ?? []).flatMap(({ trigger }, index) => {
    if (trigger.case !== "time") return [];
    const next = nextInstant(trigger.value, now);
    if (next === undefined) return [];
    return [
      {
        workflow_id: id,
        trigger_index: index,
        organization_id: scope.organizationId,
        cron_expression: trigger.value.cronExpression,
        time_zone: trigger.value.timeZone,
        overlap_policy: trigger.value.overlapPolicy,
        next_at: next,
      },
    ];
  });
}
