import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { phaseOfAgentExecution } from "../../domain/agent/agent-execution.ts";
import { withLostTurn } from "../../domain/agent/agent-progress.ts";
import { requireLostTurn, requireRetriableTurn } from "../../domain/agent/conversation/lost-turn.ts";
import { findLastSeen, findLastSeenId, hasUnseenInput } from "../../store/agent/agent-delivery.ts";
import type { StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { deliverTurnAgain, findTurnInputIds, removeTurnData } from "../../store/agent/agent-input-turn.ts";
import { raiseQueueRevision, setProgress } from "../../store/agent/agent-progress.ts";
import { findWork } from "../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { wakeAgentExecution } from "./agent-slot.ts";

/**
 * Records that the turn under a lost lease was lost, if there was one.
 * @returns the id of the last input that the agent received in the turn; undefined for none
 */
export async function recordLostTurn(
  tx: WriteTransaction,
  { execution, progress }: StoredAgentExecution,
  fence: number,
): Promise<string | undefined> {
  const last = await findLastSeen(tx.db, execution.id, fence);
  if (!last) return undefined;
  // Rows of older releases do not contain the place at which a turn began.
  const after = Math.min(progress.doneThrough ?? last.place - 1, last.place - 1);
  const [inputId = last.id] = await findTurnInputIds(tx.db, execution.id, { fence, after });
  if (progress.lostTurn) await removeTurnData(tx, execution.id, progress.lostTurn);
  const through = last.place;
  const holdsQueue = execution.spec?.holdAfterLostTurn ?? false;
  const lost = { fence, after, through, inputId, at: tx.now, holdsQueue };
  await setProgress(tx, execution.id, { ...withLostTurn(progress, lost), doneThrough: through });
  return last.id;
}

/**
 * Queues the inputs of the lost turn for delivery again, ahead of everything else.
 * @throws DomainError PHASE_UNSUITABLE when no turn was lost, or another one is running
 */
export async function retryTurn(
  tx: WriteTransaction,
  scope: Scope,
  stored: StoredAgentExecution,
): Promise<void> {
  const { id } = stored.execution;
  const lost = requireRetriableTurn(
    stored.execution,
    stored.progress.lostTurn,
    await isTaken(tx, scope, stored),
  );
  await deliverTurnAgain(tx, id, await findTurnInputIds(tx.db, id, lost));
  await wakeAgentExecution(tx, stored);
  await decide(tx, stored);
}

/**
 * Continues without the lost turn.
 * @throws DomainError PHASE_UNSUITABLE when no turn was lost
 */
export async function continueWithoutTurn(tx: WriteTransaction, stored: StoredAgentExecution): Promise<void> {
  const lost = requireLostTurn(stored.execution, stored.progress.lostTurn);
  await removeTurnData(tx, stored.execution.id, lost);
  await decide(tx, stored);
}

/** Removes data that only a continuing agent execution needs: that of its turn, and a lost turn. */
export async function forgetTurns(
  tx: WriteTransaction,
  { execution, progress }: StoredAgentExecution,
): Promise<void> {
  await removeTurnData(tx, execution.id, { after: 0, through: Number.MAX_SAFE_INTEGER });
  if (progress.lostTurn) await setProgress(tx, execution.id, withLostTurn(progress, undefined));
}

async function decide(tx: WriteTransaction, { execution, progress }: StoredAgentExecution): Promise<void> {
  await setProgress(tx, execution.id, withLostTurn(progress, undefined));
  await raiseQueueRevision(tx, execution.id);
}

/** Returns whether the agent has unanswered inputs, or will get some without a decision. */
async function isTaken(
  tx: WriteTransaction,
  scope: Scope,
  { execution, progress }: StoredAgentExecution,
): Promise<boolean> {
  // A held queue also holds unconfirmed inputs.
  if (progress.lostTurn?.holdsQueue) return false;
  if (await hasUnseenInput(tx.db, execution.id)) return true;
  return isInTurn(tx, scope, { execution });
}

/** Returns whether the agent works on inputs that it has received. */
export async function isInTurn(
  tx: WriteTransaction,
  scope: Scope,
  { execution }: Pick<StoredAgentExecution, "execution">,
): Promise<boolean> {
  if (phaseOfAgentExecution(execution) !== Phase.RUNNING) return false;
  const work = await findWork(tx.db, scope, WorkKind.AGENT, execution.id);
  return work !== undefined && (await findLastSeenId(tx.db, execution.id, work.fence)) !== undefined;
}
