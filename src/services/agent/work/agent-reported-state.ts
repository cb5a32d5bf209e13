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
  phaseOfAgentExecution,
  transitionedAgentExecution,
} from "../../../domain/agent/agent-execution.ts";
import {
  awaitedPhase,
  interestRow,
  interestUnusable,
  newWaitingInfo,
  requireValidInterests,
  requireWaiting,
} from "../../../domain/agent/agent-interest.ts";
import { goalAfterReport } from "../../../domain/agent/goal/agent-goal.ts";
import { findUnseenWakeInterestIds } from "../../../store/agent/agent-delivery.ts";
import {
  type FoundAgentExecution,
  findAgentExecution,
  type StoredAgentExecution,
  updateAgentExecution,
} from "../../../store/agent/agent-execution.ts";
import { replaceInterests } from "../../../store/agent/agent-interest.ts";
import { findEnvironment } from "../../../store/environment/environment.ts";
import type { Handle, Scope, WriteTransaction } from "../../../store/store.ts";
import { fireInterest, subagentPayload, type WakePayload } from "../agent-wake.ts";

/** The fields of a report that change the state of an agent execution. */
type ReportedState = Pick<ReportAgentRequest, "state" | "interests" | "goalStatus">;

/**
 * Applies the reported state of an agent to its agent execution. One that already waits keeps its interests: a
 * repeated report must not restart its timers.
 *
 * @returns whether the agent execution has started to wait
 * @throws DomainError VALUE_UNUSABLE for an interest that cannot fire; PHASE_UNSUITABLE for an invalid transition
 */
export async function applyReportedState(
  tx: WriteTransaction,
  scope: Scope,
  { execution: before }: StoredAgentExecution,
  { state, interests: asked, goalStatus }: ReportedState,
): Promise<boolean> {
  requireWaiting(asked, state);
  const startsWaiting = state === State.WAITING && phaseOfAgentExecution(before) !== Phase.WAITING_FOR_INPUT;
  const interests = startsWaiting ? await withoutFired(tx, before.id, asked) : [];
  const fired = startsWaiting ? await registerInterests(tx, scope, before, interests) : [];
  const goal = goalAfterReport(before.status?.goal, goalStatus, tx.now);
  const after = withStateChange(before, {
    state,
    goal,
    waitingInfo: newWaitingInfo(tx.newId(), interests, tx.now),
  });
  if (after !== before) await updateAgentExecution(tx, scope, before, after);
  for (const { interestId, payload } of fired) {
    await fireInterest(tx, scope, { executionId: before.id, interestId }, payload);
  }
  return startsWaiting;
}

/** A change of the state of an agent execution. */
interface StateChange {
  readonly state: State;
  /** New goal; undefined when it does not change. */
  readonly goal: Goal | undefined;
  /** Interests of an agent execution that starts to wait. */
  readonly waitingInfo: WaitingInfo | undefined;
}

function withStateChange(before: AgentExecution, { state, goal, waitingInfo }: StateChange): AgentExecution {
  const phase = phaseOfAgentExecution(before);
  const setGoal = (status: AgentExecution_Status) => {
    if (goal) status.goal = goal;
  };
  if (state === State.RUNNING && phase !== Phase.RUNNING) {
    return transitionedAgentExecution(before, "wake", (status) => {
      setGoal(status);
      delete status.waitingInfo;
    });
  }
  if (state === State.WAITING && phase !== Phase.WAITING_FOR_INPUT) {
    return transitionedAgentExecution(before, "wait", (status) => {
      setGoal(status);
      if (waitingInfo) status.waitingInfo = waitingInfo;
    });
  }
  return goal ? changedAgentExecution(before, setGoal) : before;
}

/**
 * Returns the interests that have not fired. Each fires once, but an agent that has not yet seen the wake event
 * registers it again.
 */
async function withoutFired(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  interests: readonly Interest[],
): Promise<readonly Interest[]> {
  if (interests.length === 0) return interests;
  const fired = await findUnseenWakeInterestIds(tx.db, executionId);
  return interests.filter(({ id }) => !fired.includes(id));
}

/** An interest whose event happened before it was registered. */
interface FiredInterest {
  readonly interestId: string;
  readonly payload: WakePayload;
}

async function registerInterests(
  tx: WriteTransaction,
  scope: Scope,
  agentExecution: FoundAgentExecution,
  interests: readonly Interest[],
): Promise<FiredInterest[]> {
  requireValidInterests(interests);
  const fired: FiredInterest[] = [];
  for (const [index, interest] of interests.entries()) {
    const payload = await findPastEvent(tx, scope, agentExecution, interest, `interests[${index}]`);
    if (payload) fired.push({ interestId: interest.id, payload });
  }
  const rows = interests.map((interest) => interestRow(interest, tx.now));
  await replaceInterests(tx, agentExecution.id, rows);
  return fired;
}

/**
 * Returns the payload of an interest whose event has already happened; otherwise undefined.
 *
 * @throws DomainError VALUE_UNUSABLE for an interest that cannot fire
 */
async function findPastEvent(
  tx: WriteTransaction,
  scope: Scope,
  agentExecution: AgentExecution,
  { interest }: Interest,
  path: string,
): Promise<WakePayload | undefined> {
  switch (interest.case) {
    case "subAgentId": {
      const subagent = (await findAgentExecution(tx.db, scope, interest.value))?.execution;
      if (subagent?.metadata?.parentExecutionId !== agentExecution.id) {
        throw interestUnusable(`${path}.subAgentId`, "sub-agent of the run");
      }
      return hasStopped(subagent) ? subagentPayload(subagent) : undefined;
    }
    case "environment": {
      const { environmentId, phase } = interest.value;
      const environment = await findEnvironment(tx.db, scope, environmentId);
      if (!environment) {
        throw interestUnusable(`${path}.environment.environmentId`, "environment of the organization");
      }
      if (phase === "" || awaitedPhase(environment) !== phase) return undefined;
      return { case: "environment", value: { environmentId, phase } };
    }
    default:
      return undefined;
  }
}
