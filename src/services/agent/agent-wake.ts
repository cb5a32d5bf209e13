import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AgentExecution, AgentInputSchema, type WakeEventSchema } from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { changedAgentExecution, hasStopped, isStopRequested } from "../../domain/agent/agent-execution.ts";
import { endedWaits, remainingWaitingInfo } from "../../domain/agent/agent-interest.ts";
import {
  type FoundAgentExecution,
  findAgentExecution,
  type StoredAgentExecution,
  updateAgentExecution,
} from "../../store/agent/agent-execution.ts";
import type { InputTurn } from "../../store/agent/agent-input.ts";
import {
  findInterestsInEnvironment,
  findInterestsInSubagent,
  type InterestKey,
  removeInterest,
  removeUserMessageInterests,
} from "../../store/agent/agent-interest.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { queueInput } from "./agent-queue.ts";

/** The payload of a wake event. */
export type WakePayload = NonNullable<MessageInitShape<typeof WakeEventSchema>["payload"]>;

/** The maximum lengths of texts in a wake event (contract, WakeEvent). */
const MAX_FAILURE_CHARACTERS = 2_048;
const MAX_SUBAGENT_FAILURE_CHARACTERS = 4_096;

/**
 * Fires an interest: removes it and queues its wake event, both in this transaction and so exactly once. An agent
 * execution that is to stop gets no wake event.
 *
 * @param from the sender of the event; absent for the service
 * @returns false when the agent execution has no such interest
 */
export async function fireInterest(
  tx: WriteTransaction,
  scope: Scope,
  name: InterestKey,
  payload: WakePayload,
  { sender, turn }: { readonly sender?: Subject; readonly turn?: InputTurn } = {},
): Promise<boolean> {
  if (!(await removeInterest(tx, name))) return false;
  const stored = await findAgentExecution(tx.db, scope, name.executionId);
  if (!stored || hasStopped(stored.execution) || isStopRequested(stored.execution)) return true;
  await hideInterests(tx, scope, stored, [name.interestId]);
  const input = create(AgentInputSchema, {
    id: tx.newId(),
    createdAt: timestampFromMs(tx.now),
    ...(sender && { sender }),
    input: { case: "wakeEvent", value: { interestId: name.interestId, payload } },
  });
  await queueInput(tx, stored, input, turn && { turn });
  return true;
}

/** Removes the interests in a user's message, which has arrived. The message itself wakes the agent. */
export async function endUserMessageInterests(
  tx: WriteTransaction,
  scope: Scope,
  stored: StoredAgentExecution,
): Promise<void> {
  const ended = await removeUserMessageInterests(tx, stored.execution.id);
  await hideInterests(tx, scope, stored, ended);
}

/** Removes interests from the status of an agent execution. */
async function hideInterests(
  tx: WriteTransaction,
  scope: Scope,
  { execution: before }: Pick<StoredAgentExecution, "execution">,
  interestIds: readonly string[],
): Promise<void> {
  const shown = before.status?.waitingInfo;
  if (!shown?.interests.some(({ id }) => interestIds.includes(id))) return;
  const after = changedAgentExecution(before, (status) => {
    const left = remainingWaitingInfo(status.waitingInfo, interestIds);
    if (left) status.waitingInfo = left;
    else delete status.waitingInfo;
  });
  await updateAgentExecution(tx, scope, before, after);
}

/** Wakes the parent of a stopped sub-agent, if it waits for it. */
export async function wakeForSubagent(
  tx: WriteTransaction,
  scope: Scope,
  subagent: FoundAgentExecution,
): Promise<void> {
  for (const name of await findInterestsInSubagent(tx.db, subagent.id)) {
    await fireInterest(tx, scope, name, subagentPayload(subagent));
  }
}

/** Returns the payload of the wake event for the end of a sub-agent. */
export function subagentPayload({ id, status }: AgentExecution): WakePayload {
  const failureMessage = truncateToCodePoints(status?.failureMessage ?? "", MAX_SUBAGENT_FAILURE_CHARACTERS);
  return { case: "subAgent", value: { executionId: id, failureMessage } };
}

/**
 * Finds the agent executions that wait for a phase of an environment that has been reached or can no longer be
 * reached.
 *
 * @param after undefined for an environment that was removed
 * @returns the function that wakes them and returns whether it found some
 */
export async function findWaitsForEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment | undefined,
): Promise<() => Promise<boolean>> {
  const ended = endedWaits(before, after);
  const interests = ended.length > 0 ? await findInterestsInEnvironment(tx.db, scope, before.id) : [];
  return async () => {
    for (const { phase, failureMessages } of ended) {
      const failureMessage = failureMessages.map((message) =>
        truncateToCodePoints(message, MAX_FAILURE_CHARACTERS),
      );
      const value = { environmentId: before.id, phase, failureMessage };
      for (const name of interests.filter((interest) => interest.phase === "" || interest.phase === phase)) {
        await fireInterest(tx, scope, name, { case: "environment", value });
      }
    }
    return interests.length > 0;
  };
}

/** Returns the start of a text, at most `max` characters as the contract counts them. */
function truncateToCodePoints(text: string, max: number): string {
  return [...text].slice(0, max).join("");
}
