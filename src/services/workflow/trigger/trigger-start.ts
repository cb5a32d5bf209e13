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

/** The fields of a ledger entry that are known before the start. */
export type StartOccurrence = Omit<TriggerOccurrence, "verdict" | "reason" | "executionId">;

/**
 * Starts an execution for a trigger that fired, and records it in the ledger. A rejected start is rolled back and
 * recorded with the reason, but without its deduplication key: the event can be delivered again.
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

/** Returns the reason why no trigger of a workflow fires; undefined for an enabled workflow. */
export function disabledReason({ spec }: Workflow): string | undefined {
  if (spec?.deleting) return "the workflow is pending deletion";
  return spec?.disabled ? "the workflow is disabled" : undefined;
}
