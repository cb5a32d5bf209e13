import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AgentExecution, AgentInputSchema, type WakeEventSchema } from "#gen/service/v1/agent_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { changedAgentExecution, hasStopped, isWantedStopped } from "../../domain/agent/agent-execution.ts";
import { endedWaits, stillWaitingFor } from "../../domain/agent/agent-interest.ts";
import {
  findAgentExecution,
  type StoredAgentExecution,
  updateAgentExecution,
} from "../../store/agent/agent-execution.ts";
import type { InputTurn } from "../../store/agent/agent-input.ts";
import {
  findInterestsInEnvironment,
  findInterestsInSubagent,
  type InterestName,
  takeInterest,
  takeUserMessageInterests,
} from "../../store/agent/agent-interest.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { queueInput } from "./agent-queue.ts";

/** What happened, as a wake event tells it. */
export type WakePayload = NonNullable<MessageInitShape<typeof WakeEventSchema>["payload"]>;

/** Longest texts that a wake event carries (contract, WakeEvent). */
const FAILURE_CHARACTERS = 2_048;
const SUBAGENT_FAILURE_CHARACTERS = 4_096;

/**
 * Fires an interest: it goes, and the wake event joins the queue of the run, both
 * in this transaction and so exactly once. A run that is to stop is woken no more.
 *
 * @param from who tells of it; left out for the service
 * @returns false when the run has no such interest
 */
export async function fireInterest(
  tx: WriteTransaction,
  scope: Scope,
  name: InterestName,
  payload: WakePayload,
  { sender, turn }: { readonly sender?: Subject; readonly turn?: InputTurn } = {},
): Promise<boolean> {
  if (!(await takeInterest(tx, name))) return false;
  const stored = await findAgentExecution(tx.db, scope, name.executionId);
  if (!stored || hasStopped(stored.execution) || isWantedStopped(stored.execution)) return true;
  await forgetInterests(tx, scope, stored, [name.interestId]);
  const input = create(AgentInputSchema, {
    id: tx.newId(),
    createdAt: timestampFromMs(tx.now),
    ...(sender && { sender }),
    input: { case: "wakeEvent", value: { interestId: name.interestId, payload } },
  });
  await queueInput(tx, stored, input, turn && { turn });
  return true;
}

/** Ends the wait of a run for a message, which has come; the message itself tells of that. */
export async function endUserMessageInterests(
  tx: WriteTransaction,
  scope: Scope,
  run: StoredAgentExecution,
): Promise<void> {
  const ended = await takeUserMessageInterests(tx, run.execution.id);
  await forgetInterests(tx, scope, run, ended);
}

/** Takes interests that are gone out of what the run's status shows. */
export async function forgetInterests(
  tx: WriteTransaction,
  scope: Scope,
  { execution: before }: Pick<StoredAgentExecution, "execution">,
  interestIds: readonly string[],
): Promise<void> {
  const shown = before.status?.waitingInfo;
  if (!shown?.interests.some(({ id }) => interestIds.includes(id))) return;
  const after = changedAgentExecution(before, (status) => {
    const left = stillWaitingFor(status.waitingInfo, interestIds);
    if (left) status.waitingInfo = left;
    else delete status.waitingInfo;
  });
  await updateAgentExecution(tx, scope, before, after);
}

/** Tells the parent of a sub-agent that has stopped, where that waits for it. */
export async function wakeForSubagent(
  tx: WriteTransaction,
  scope: Scope,
  subagent: AgentExecution,
): Promise<void> {
  for (const name of await findInterestsInSubagent(tx.db, subagent.id)) {
    await fireInterest(tx, scope, name, endOfSubagent(subagent));
  }
}

/** The end of a sub-agent, as a wake event tells it. */
export function endOfSubagent({ id, status }: AgentExecution): WakePayload {
  const failureMessage = cut(status?.failureMessage ?? "", SUBAGENT_FAILURE_CHARACTERS);
  return { case: "subAgent", value: { executionId: id, failureMessage } };
}

/**
 * Tells the runs that wait for a phase of an environment that it was reached, or
 * will not be.
 *
 * @param after undefined for an environment that was removed
 */
export async function wakeForEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment | undefined,
): Promise<void> {
  for (const { phase, failureMessages } of endedWaits(before, after)) {
    const failureMessage = failureMessages.map((message) => cut(message, FAILURE_CHARACTERS));
    const value = { environmentId: before.id, phase, failureMessage };
    for (const name of await findInterestsInEnvironment(tx.db, before.id, phase)) {
      await fireInterest(tx, scope, name, { case: "environment", value });
    }
  }
}

function cut(text: string, characters: number): string {
  return [...text].slice(0, characters).join("");
}
