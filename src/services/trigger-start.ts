import { TriggerVerdict, type Workflow, type WorkflowTriggerEvent } from "#gen/service/v1/workflow_pb.js";
import { DomainError } from "../domain/error.ts";
import type { WriteTransaction } from "../store/store.ts";
import { type ExecutionStart, startExecution } from "./execution-start.ts";
import { recordTriggerEvent, type TriggerOccurrence } from "./trigger-ledger.ts";

/** What an entry says that does not follow from the start itself. */
export type StartOccurrence = Omit<TriggerOccurrence, "workflowId" | "verdict" | "reason" | "executionId">;

/**
 * Starts an execution because a trigger fired, and enters it. A start that is
 * refused, as StartWorkflow would have been, is entered with the reason, and
 * leaves nothing else; its key stays free.
 *
 * @param prepare what must be done first, and is undone when the start is refused
 */
export async function startAndRecord(
  tx: WriteTransaction,
  start: ExecutionStart,
  { dedupeKey, ...occurrence }: StartOccurrence,
  prepare: () => Promise<void> = async () => undefined,
): Promise<WorkflowTriggerEvent> {
  const entry = {
    ...occurrence,
    workflowId: start.workflow.id,
    ...(start.triggerIndex !== null && { triggerIndex: start.triggerIndex }),
  };
  try {
    const { id } = await tx.attempt(async () => {
      await prepare();
      return startExecution(tx, start);
    });
    const started = { ...entry, verdict: TriggerVerdict.STARTED, executionId: id };
    return recordTriggerEvent(tx, start, dedupeKey === undefined ? started : { ...started, dedupeKey });
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return recordTriggerEvent(tx, start, {
      ...entry,
      verdict: TriggerVerdict.REFUSED,
      reason: error.message,
    });
  }
}

/** Why triggers of a workflow do not fire; undefined while they do. */
export function whyOff({ spec }: Workflow): string | undefined {
  if (spec?.deleting) return "the workflow is pending deletion";
  return spec?.disabled ? "the workflow is disabled" : undefined;
}
