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

/** One instant of a time trigger. */
export interface DueInstant {
  readonly organizationId: string;
  readonly workflow: Workflow;
  /** Place of the trigger in the workflow's list. */
  readonly triggerIndex: number;
  /** Milliseconds since 1970 UTC. */
  readonly instantMs: number;
  readonly creator: Subject;
  /** The entry that brings it up again; without one an instant that was started is a duplicate. */
  readonly redeliveredEventId?: string;
}

/** Does at an instant what the trigger says, and enters what came of it. */
export async function fireTimeTrigger(tx: WriteTransaction, due: DueInstant): Promise<WorkflowTriggerEvent> {
  const { workflow, triggerIndex, instantMs, redeliveredEventId } = due;
  const entry = {
    source: Source.TIME,
    workflowId: workflow.id,
    atMs: instantMs,
    triggerIndex,
    redeliveredEventId,
  };
  const record = (verdict: TriggerVerdict, reason = "", executionId = "") =>
    recordTriggerEvent(tx, due, { ...entry, verdict, reason, executionId });

  const off = disabledReason(workflow);
  if (off !== undefined) return record(TriggerVerdict.DISABLED, off);
  const { trigger, context } = workflow.spec?.triggers[triggerIndex] ?? {};
  if (trigger?.case !== "time" || !context) {
    return record(
      TriggerVerdict.NO_MATCH,
      `trigger ${triggerIndex} of the workflow goes by the clock no more`,
    );
  }
  const dedupeKey = redeliveredEventId === undefined ? `time:${triggerIndex}:${instantMs}` : undefined;
  const earlier = dedupeKey && (await findTriggerEventByKey(tx.db, due, workflow.id, dedupeKey));
  if (earlier) return record(TriggerVerdict.DUPLICATE, "", earlier.workflowExecutionId);

  const { overlapPolicy } = trigger.value;
  const previous = await previousOf(tx, due, overlapPolicy);
  if (overlapPolicy === OverlapPolicy.SKIP && previous.length > 0) {
    return record(TriggerVerdict.OVERLAP, `the execution ${previous[0]} still runs`);
  }
  return startAndRecord(tx, due, { ...entry, dedupeKey }, async () => {
    for (const id of previous) await cancelExecution(tx, due, id);
    return startExecution(tx, {
      ...due,
      trigger: create(WorkflowExecutionTriggerSchema, {
        trigger: { case: "time", value: { triggeredAt: timestampFromMs(instantMs) } },
        context,
      }),
      parameters: {},
    });
  });
}

/** The executions of the trigger that an overlap policy is about: none where all may run beside each other. */
async function previousOf(
  tx: WriteTransaction,
  due: DueInstant,
  overlapPolicy: OverlapPolicy,
): Promise<string[]> {
  if (overlapPolicy !== OverlapPolicy.SKIP && overlapPolicy !== OverlapPolicy.CANCEL_PREVIOUS) return [];
  const { workflow, triggerIndex } = due;
  return findOpenExecutionIds(tx.db, due, { workflowId: workflow.id, triggerIndex });
}
