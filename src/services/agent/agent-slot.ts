import {
  AgentExecution_Phase as Phase,
  AgentExecution_Status_Slot as Slot,
} from "#gen/service/v1/agent_pb.js";
import { isStopRequested, phaseOfAgentExecution } from "../../domain/agent/agent-execution.ts";
import { updatedProgress } from "../../domain/agent/agent-progress.ts";
import { hasUnseenInput } from "../../store/agent/agent-delivery.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findQueuedInputs } from "../../store/agent/agent-input.ts";
import { setProgress } from "../../store/agent/agent-progress.ts";
import { AGENT_SLOTS_LEVEL, mayStore } from "../../store/feature-level.ts";
import { findLease } from "../../store/runner/work-lease.ts";
import { askToGiveBack, parkWork, setIdleSince, unparkWork } from "../../store/runner/work-slot.ts";
import type { Handle, Scope, WriteTransaction } from "../../store/store.ts";

/**
 * Asks the runner that holds an idle agent execution to give back its slot. From then on no input is delivered under
 * its lease. An execution that has received an input in the meantime keeps its slot.
 */
export async function askForSlot(tx: WriteTransaction, scope: Scope, leaseId: string): Promise<void> {
  const lease = await findLease(tx.db, scope, leaseId);
  if (!mayStore(tx, AGENT_SLOTS_LEVEL)) return;
  if (!lease || lease.leased_by === null || lease.idle_since === null || lease.stop !== 0) return;
  const stored = await findAgentExecution(tx.db, scope, lease.subject_id);
  if (stored && (await isIdle(tx, stored))) return askToGiveBack(tx, lease);
  // Restarts the idle time, so that it is checked again later.
  await setIdleSince(tx, lease.id, tx.now);
}

/**
 * Ends a lease after the slot was requested back, given back or lost with its runner. The agent execution rests until
 * an input arrives.
 *
 * @returns false when an input has already arrived: the work must be leased again
 */
export async function restAgentExecution(
  tx: WriteTransaction,
  id: Handle<"work">,
  stored: StoredAgentExecution,
): Promise<boolean> {
  if (!(await isIdle(tx, stored))) return false;
  await parkWork(tx, id);
  await changeSlot(tx, stored, Slot.GIVEN_BACK);
  return true;
}

/** Makes an agent execution that has given its slot back available for leasing again; others do not change. */
export async function wakeAgentExecution(
  tx: WriteTransaction,
  { execution, progress }: Pick<StoredAgentExecution, "execution" | "progress">,
): Promise<void> {
  if (progress.slot === Slot.GIVEN_BACK) await unparkWork(tx, execution.id);
}

/**
 * Records that an agent execution is leased.
 * @returns the current time, when it is idle from now on and could give back its slot; otherwise undefined
 */
export async function takeSlot(
  tx: WriteTransaction,
  stored: StoredAgentExecution,
): Promise<number | undefined> {
  if (stored.progress.slot === Slot.GIVEN_BACK) await changeSlot(tx, stored, Slot.SHARED);
  const isWaiting = phaseOfAgentExecution(stored.execution) === Phase.WAITING_FOR_INPUT;
  return isWaiting && stored.progress.slot !== undefined ? tx.now : undefined;
}

async function isIdle(tx: WriteTransaction, { execution }: StoredAgentExecution): Promise<boolean> {
  if (phaseOfAgentExecution(execution) !== Phase.WAITING_FOR_INPUT || isStopRequested(execution))
    return false;
  if (await hasUnseenInput(tx.db, execution.id)) return false;
  return (await findQueuedInputs(tx.db, execution.id)).length === 0;
}

async function changeSlot(
  tx: WriteTransaction,
  { execution, progress }: StoredAgentExecution,
  slot: NonNullable<StoredAgentExecution["progress"]["slot"]>,
): Promise<void> {
  const after = updatedProgress(progress, { slot });
  if (after) await setProgress(tx, execution.id, after);
}
