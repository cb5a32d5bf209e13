import {
  type ReportAgentRequest_Interest as Interest,
  type ReportAgentRequest,
  ReportAgentRequest_State as State,
} from "#gen/runner/v1/agent_work_service_pb.js";
import {
  type AgentExecution,
  type AgentExecution_Status,
  type AgentExecution_Status_Goal as Goal,
  AgentExecution_Phase as Phase,
  type AgentExecution_WaitingInfo as WaitingInfo,
} from "#gen/service/v1/agent_pb.js";
import {
  changedAgentExecution,
  hasStopped,
  movedAgentExecution,
  phaseOfAgentExecution,
} from "../../../domain/agent/agent-execution.ts";
import { awaitedPhase, interestRow, waitingFor } from "../../../domain/agent/agent-interest.ts";
import { reportedGoal } from "../../../domain/agent/goal/agent-goal.ts";
import { valueUnusable } from "../../../domain/error.ts";
import { findUnseenWakes } from "../../../store/agent/agent-delivery.ts";
import {
  findAgentExecution,
  type StoredAgentExecution,
  updateAgentExecution,
} from "../../../store/agent/agent-execution.ts";
import { replaceInterests } from "../../../store/agent/agent-interest.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { endOfSubagent, fireInterest, type WakePayload } from "../agent-wake.ts";

/** What of a report moves the run. */
type ReportedState = Pick<ReportAgentRequest, "state" | "interests" | "goalStatus">;

/**
 * Moves a run to where its agent stands. A run that waits already goes on waiting
 * for the same: a repeated report must not start its timers anew.
 *
 * @returns whether the run has come to wait
 * @throws DomainError VALUE_UNUSABLE for an interest that cannot fire;
 *   PHASE_UNSUITABLE for a move that the run cannot make
 */
export async function applyReportedState(
  tx: WriteTransaction,
  scope: Scope,
  { execution: before }: StoredAgentExecution,
  { state, interests: asked, goalStatus }: ReportedState,
): Promise<boolean> {
  if (asked.length > 0 && state !== State.WAITING) {
    throw valueUnusable("interests", "interests are registered with STATE_WAITING");
  }
  const comesToWait = state === State.WAITING && phaseOfAgentExecution(before) !== Phase.WAITING_FOR_INPUT;
  const interests = comesToWait ? await withoutFired(tx, before.id, asked) : [];
  const fired = comesToWait ? await registerInterests(tx, scope, before, interests) : [];
  const goal = reportedGoal(before.status?.goal, goalStatus, tx.now);
  const after = standingRun(before, { state, goal, waitingInfo: waitingFor(tx.newId(), interests, tx.now) });
  if (after !== before) await updateAgentExecution(tx, scope, before, after);
  for (const { interestId, payload } of fired) {
    await fireInterest(tx, scope, { executionId: before.id, interestId }, payload);
  }
  return comesToWait;
}

/** Where an agent stands from now on. */
interface NewStanding {
  readonly state: State;
  /** Undefined for the goal that it has. */
  readonly goal: Goal | undefined;
  /** What a run that comes to wait waits for. */
  readonly waitingInfo: WaitingInfo | undefined;
}

function standingRun(before: AgentExecution, { state, goal, waitingInfo }: NewStanding): AgentExecution {
  const phase = phaseOfAgentExecution(before);
  const setGoal = (status: AgentExecution_Status) => {
    if (goal) status.goal = goal;
  };
  if (state === State.RUNNING && phase !== Phase.RUNNING) {
    return movedAgentExecution(before, "wake", (status) => {
      setGoal(status);
      delete status.waitingInfo;
    });
  }
  if (state === State.WAITING && phase !== Phase.WAITING_FOR_INPUT) {
    return movedAgentExecution(before, "wait", (status) => {
      setGoal(status);
      if (waitingInfo) status.waitingInfo = waitingInfo;
    });
  }
  return goal ? changedAgentExecution(before, setGoal) : before;
}

/** Each interest fires once: an agent that has not got the news of it yet asks for it again. */
async function withoutFired(
  tx: WriteTransaction,
  executionId: string,
  interests: readonly Interest[],
): Promise<readonly Interest[]> {
  if (interests.length === 0) return interests;
  const fired = await findUnseenWakes(tx.db, executionId);
  return interests.filter(({ id }) => !fired.includes(id));
}

/** What has happened already of that which a run begins to wait for. */
interface Happened {
  readonly interestId: string;
  readonly payload: WakePayload;
}

async function registerInterests(
  tx: WriteTransaction,
  scope: Scope,
  run: AgentExecution,
  interests: readonly Interest[],
): Promise<Happened[]> {
  const happened: Happened[] = [];
  for (const [index, interest] of interests.entries()) {
    const path = `interests[${index}]`;
    if (interests.findIndex(({ id }) => id === interest.id) !== index) {
      throw valueUnusable(`${path}.id`, "two interests have the same id: give each its own");
    }
    const payload = await whatHappened(tx, scope, run, interest, path);
    if (payload) happened.push({ interestId: interest.id, payload });
  }
  const rows = interests.map((interest) => interestRow(interest, tx.now));
  await replaceInterests(tx, run.id, rows);
  return happened;
}

/** @throws DomainError VALUE_UNUSABLE for an interest that cannot fire */
async function whatHappened(
  tx: WriteTransaction,
  scope: Scope,
  run: AgentExecution,
  { interest }: Interest,
  path: string,
): Promise<WakePayload | undefined> {
  switch (interest.case) {
    case "subAgentId": {
      const subagent = (await findAgentExecution(tx.db, scope, interest.value))?.execution;
      if (subagent?.metadata?.parentExecutionId !== run.id) {
        throw valueUnusable(`${path}.subAgentId`, `${path}.subAgentId names no sub-agent of the run`);
      }
      return hasStopped(subagent) ? endOfSubagent(subagent) : undefined;
    }
    case "environment": {
      const { environmentId, phase } = interest.value;
      const environment = await findEnvironment(tx.db, scope, environmentId);
      if (!environment) {
        const field = `${path}.environment.environmentId`;
        throw valueUnusable(field, `${field} names no environment of the organization`);
      }
      if (phase === "" || awaitedPhase(environment) !== phase) return undefined;
      return { case: "environment", value: { environmentId, phase } };
    }
    case "userMessage":
      if (interest.value) return undefined;
      throw valueUnusable(`${path}.userMessage`, `${path}.userMessage is true, or left out`);
    default:
      return undefined;
  }
}
