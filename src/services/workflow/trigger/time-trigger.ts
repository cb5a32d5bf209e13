import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import {
  WorkflowTrigger_OverlapPolicy as OverlapPolicy,
  WorkflowTriggerEvent_Source as Source,
  TriggerVerdict,
  type Workflow,
  WorkflowExecutionTriggerSchema,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import type { WriteTransaction } from "../../../store/store.ts";
import { findOpenExecutionIds } from "../../../store/workflow/workflow-execution.ts";
import { findTriggerEventByKey } from "../../../store/workflow/workflow-trigger-event.ts";
import { cancelExecution } from "../execution/execution-cancel.ts";
import { startExecution } from "../execution/execution-start.ts";
import { recordTriggerEvent } from "./trigger-ledger.ts";
import { disabledReason, startAndRecord } from "./trigger-start.ts";

/** The firing of a time trigger at one instant. */
export interface TimeTriggerFiring {
  readonly organizationId: string;
  readonly workflow: Workflow;
  /** Index of the trigger in the workflow's list. */
  readonly triggerIndex: number;
  /** Milliseconds since 1970 UTC. */
  readonly instantMs: number;
  readonly creator: Subject;
  /** The ledger entry to redeliver. Without it, an instant that has fired before is a duplicate. */
  readonly redeliveredEventId?: string;
}

/** Fires a time trigger and records the result in the trigger ledger. */
export async function fireTimeTrigger(
  tx: WriteTransaction,
  firing: TimeTriggerFiring,
): Promise<WorkflowTriggerEvent> {
  const { workflow, triggerIndex, instantMs, redeliveredEventId } = firing;
  const entry = {
    source: Source.TIME,
    workflowId: workflow.id,
    atMs: instantMs,
    triggerIndex,
    redeliveredEventId,
  };
  const record = (verdict: TriggerVerdict, reason = "", executionId = "") =>
    recordTriggerEvent(tx, firing, { ...entry, verdict, reason, executionId });

  const disabled = disabledReason(workflow);
  if (disabled !== undefined) return record(TriggerVerdict.DISABLED, disabled);
  const { trigger, context } = workflow.spec?.triggers[triggerIndex] ?? {};
  if (trigger?.case !== "time" || !context) {
    return record(
      TriggerVerdict.NO_MATCH,
      `trigger ${triggerIndex} of the workflow goes by the clock no more`,
    );
  }
  const dedupeKey = redeliveredEventId === undefined ? `time:${triggerIndex}:${instantMs}` : undefined;
  const earlier = dedupeKey && (await findTriggerEventByKey(tx.db, firing, workflow.id, dedupeKey));
  if (earlier) return record(TriggerVerdict.DUPLICATE, "", earlier.workflowExecutionId);

  const { overlapPolicy } = trigger.value;
  const previous = await findOverlappingExecutions(tx, firing, overlapPolicy);
  if (overlapPolicy === OverlapPolicy.SKIP && previous.length > 0) {
    return record(TriggerVerdict.OVERLAP, `the execution ${previous[0]} still runs`);
  }
  return startAndRecord(tx, firing, { ...entry, dedupeKey }, async () => {
    for (const id of previous) await cancelExecution(tx, firing, id);
    return startExecution(tx, {
      ...firing,
      trigger: create(WorkflowExecutionTriggerSchema, {
        trigger: { case: "time", value: { triggeredAt: timestampFromMs(instantMs) } },
        context,
      }),
      parameters: {},
    });
  });
}

/** Returns the ids of the trigger's open executions; none when the overlap policy allows parallel ones. */
async function findOverlappingExecutions(
  tx: WriteTransaction,
  firing: TimeTriggerFiring,
  overlapPolicy: OverlapPolicy,
): Promise<string[]> {
  if (overlapPolicy !== OverlapPolicy.SKIP && overlapPolicy !== OverlapPolicy.CANCEL_PREVIOUS) return [];
  const { workflow, triggerIndex } = firing;
  return findOpenExecutionIds(tx.db, firing, { workflowId: workflow.id, triggerIndex });
}
