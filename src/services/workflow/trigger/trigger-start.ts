import {
  TriggerVerdict,
  type Workflow,
  type WorkflowExecution,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import { DomainError } from "../../../domain/error.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { withinQuota } from "../../call/storage-quota.ts";
import { recordTriggerEvent, type TriggerOccurrence } from "./trigger-ledger.ts";

/** The fields of an entry that do not follow from the result of the start. */
export type StartOccurrence = Omit<TriggerOccurrence, "verdict" | "reason" | "executionId">;

/**
 * Starts an execution because a trigger fired, and enters it. A start that is
 * refused, as StartWorkflow would have been, is entered with the reason and
 * leaves nothing else; its key stays free.
 */
export async function startAndRecord(
  tx: WriteTransaction,
  scope: Scope,
  { dedupeKey, ...entry }: StartOccurrence,
  start: () => Promise<WorkflowExecution>,
): Promise<WorkflowTriggerEvent> {
  let execution: WorkflowExecution;
  try {
    execution = await tx.attempt(() => withinQuota(tx, scope, start));
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return recordTriggerEvent(tx, scope, {
      ...entry,
      verdict: TriggerVerdict.REFUSED,
      reason: error.message,
    });
  }
  return recordTriggerEvent(tx, scope, {
    ...entry,
    verdict: TriggerVerdict.STARTED,
    executionId: execution.id,
    dedupeKey,
  });
}

/** Why triggers of a workflow do not fire; undefined while they do. */
export function disabledReason({ spec }: Workflow): string | undefined {
  if (spec?.deleting) return "the workflow is pending deletion";
  return spec?.disabled ? "the workflow is disabled" : undefined;
}
