import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AgentControlInput,
  AgentInputSchema,
  type AgentControlInput_Goal as GoalInput,
  AgentInputReceipt as Receipt,
} from "#gen/service/v1/agent_pb.js";
import { changedAgentExecution } from "../../domain/agent/agent-execution.ts";
import {
  requireControlSpace,
  withMovedInput,
  withoutInput,
  withSteeredInput,
} from "../../domain/agent/agent-queue.ts";
import { goalAfterControl } from "../../domain/agent/goal/agent-goal.ts";
import { addGoalTime, newGoalUse } from "../../domain/agent/goal/agent-goal-use.ts";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireGoalsAllowed } from "../../domain/policy/agent-policy.ts";
import { requireNoDeceptiveText } from "../../domain/text/deceptive-text.ts";
import { type StoredAgentExecution, updateAgentExecution } from "../../store/agent/agent-execution.ts";
import { findInput, type InputTurn, setInputDeleted } from "../../store/agent/agent-input.ts";
import { setProgress } from "../../store/agent/agent-progress.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { Handle, WriteTransaction } from "../../store/store.ts";
import { continueWithoutTurn, retryTurn } from "./agent-lost-turn.ts";
import { queueInput, readQueue, reorderQueue } from "./agent-queue.ts";

/** Goal actions that policies may forbid, because they give the agent a goal. Ending a goal is always allowed. */
const POLICY_BOUND_ACTIONS: readonly GoalInput["action"]["case"][] = ["set", "resume"];

/**
 * Handles a control input of an agent execution. An input for the queue is executed immediately. An input for the
 * agent is queued and delivered to the runner before all messages.
 *
 * @throws DomainError NOT_FOUND for a message that is not queued; PHASE_UNSUITABLE for a goal in another state, or
 * without a lost turn; QUEUE_FULL; TEXT_DECEPTIVE; PolicyDenied
 */
export async function handleControlInput(
  tx: WriteTransaction,
  caller: Caller,
  stored: StoredAgentExecution,
  order: AgentControlInput,
  turn: InputTurn,
): Promise<void> {
  const { id } = stored.execution;
  const { control } = order;
  switch (control.case) {
    case "deleteQueuedMessage": {
      const inputId = await requireQueuedMessage(tx, id, control.value.userInputId);
      const before = await readQueue(tx, stored);
      await setInputDeleted(tx, id, inputId);
      return reorderQueue(tx, id, before, withoutInput(before, inputId));
    }
    case "steerQueuedMessage": {
      const inputId = await requireQueuedMessage(tx, id, control.value.userInputId);
      const before = await readQueue(tx, stored);
      return reorderQueue(tx, id, before, withSteeredInput(before, inputId));
    }
    case "moveQueuedMessage": {
      const inputId = await requireQueuedMessage(tx, id, control.value.userInputId);
      const { beforeUserInputId } = control.value;
      if (beforeUserInputId !== "") await requireQueuedMessage(tx, id, beforeUserInputId);
      const before = await readQueue(tx, stored);
      return reorderQueue(tx, id, before, withMovedInput(before, inputId, beforeUserInputId));
    }
    case "retryTurn":
      return retryTurn(tx, caller, stored);
    case "goOn":
      return continueWithoutTurn(tx, stored);
    default:
      requireControlSpace(await readQueue(tx, stored));
      if (control.case === "goal") await changeGoal(tx, caller, stored, control.value);
      return queueControlInput(tx, caller, stored, order, turn);
  }
}

/** @throws DomainError NOT_FOUND when the id names no queued message of a user */
async function requireQueuedMessage(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  inputId: string,
): Promise<string> {
  const { input } = (await findInput(tx.db, executionId, inputId)) ?? {};
  if (input?.receipt !== Receipt.QUEUED || input.input.case !== "userInput") throw notFound("queued message");
  return inputId;
}

async function changeGoal(
  tx: WriteTransaction,
  caller: Caller,
  { execution: before, progress }: StoredAgentExecution,
  order: GoalInput,
): Promise<void> {
  const { action } = order;
  if (POLICY_BOUND_ACTIONS.includes(action.case)) requireGoalsAllowed(await findPolicies(tx.db, caller));
  if (action.case === "set")
    requireNoDeceptiveText(action.value.objective, "controlInput.goal.set.objective");
  const present = before.status?.goal;
  const goal = goalAfterControl(present, order, tx.now);
  const after = changedAgentExecution(before, (status) => {
    if (goal) status.goal = goal;
    else delete status.goal;
  });
  await updateAgentExecution(tx, caller, before, after);
  // Usage so far is counted according to the goal's previous state.
  const goalUse =
    action.case === "set"
      ? newGoalUse(progress.goalUse, tx.now)
      : addGoalTime(progress.goalUse, present, tx.now);
  await setProgress(tx, before.id, { ...progress, goalUse });
}

function queueControlInput(
  tx: WriteTransaction,
  { subject: sender }: Caller,
  stored: StoredAgentExecution,
  order: AgentControlInput,
  turn: InputTurn,
): Promise<void> {
  const input = create(AgentInputSchema, {
    id: tx.newId(),
    sender,
    createdAt: timestampFromMs(tx.now),
    input: { case: "controlInput", value: order },
  });
  return queueInput(tx, stored, input, { steer: true, turn });
}
