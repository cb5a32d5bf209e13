import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AgentReportResult,
  AgentReportResultSchema,
  type ReportAgentRequest,
  type ReportAgentResponse,
  ReportAgentResponseSchema,
  type ReportAgentsRequest,
  ReportAgentsResponseSchema,
  ReportAgentRequest_State as State,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  AgentExecution_Phase as Phase,
  AgentInputReceipt as Receipt,
  AgentExecution_Status_Slot as Slot,
} from "#gen/service/v1/agent_pb.js";
import { hasStopped, phaseOfAgentExecution } from "../../../domain/agent/agent-execution.ts";
import { requireDelivered } from "../../../domain/agent/agent-input.ts";
import { newBlocks } from "../../../domain/agent/agent-output.ts";
import { type AgentProgress, tokensBetween, updatedProgress } from "../../../domain/agent/agent-progress.ts";
import { addGoalUse } from "../../../domain/agent/goal/agent-goal-use.ts";
import { requireWorkKind } from "../../../domain/runner/lease.ts";
import {
  findLastSeen,
  findLastSeenId,
  hasUnseenInput,
  setInputSeen,
} from "../../../store/agent/agent-delivery.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findInput } from "../../../store/agent/agent-input.ts";
import { removeTurnData } from "../../../store/agent/agent-input-turn.ts";
import { appendOutput } from "../../../store/agent/agent-output.ts";
import { setProgress } from "../../../store/agent/agent-progress.ts";
import { findLease, renewLease, resetAttempts, type StoredLease } from "../../../store/runner/work-lease.ts";
import { setIdleSince } from "../../../store/runner/work-slot.ts";
import type { Handle, Scope, WriteTransaction } from "../../../store/store.ts";
import { cancelApprovals } from "../../approval/approval-end.ts";
import { reportEnvironment } from "../../environment/environment-work.ts";
import { recordHeartbeat } from "../../runner/heartbeat.ts";
import { type LeaseDependencies, ordersOf, requireLease, writeUnderLease } from "../../runner/held-lease.ts";
import { type Part, type PartResult, writeParts } from "../../runner/write-parts.ts";
import { applyReportedState } from "./agent-reported-state.ts";
import { reportEnvironmentOfAgent } from "./agent-with-environment-work.ts";

/** Applies a runner's report on an agent execution, completely or not at all. A report on a stopped one is ignored. */
export async function reportAgent(deps: LeaseDependencies, req: ReportAgentRequest, ctx: HandlerContext) {
  await recordHeartbeat(deps, ctx);
  return writeUnderLease(deps, req, ctx, (tx, scope, lease) => applyAgentReport(deps, tx, scope, lease, req));
}

/** Applies reports on several agent executions independently. */
export async function reportAgents(
  deps: LeaseDependencies,
  { reports }: ReportAgentsRequest,
  ctx: HandlerContext,
) {
  await recordHeartbeat(deps, ctx);
  const parts = reports.map(
    (report): Part<ReportAgentResponse> =>
      async (tx, caller) => {
        const lease = await requireLease(tx.db, caller, report, tx.now);
        return () => applyAgentReport(deps, tx, caller, lease, report);
      },
  );
  return writeParts(deps, ctx, parts, (results) =>
    create(ReportAgentsResponseSchema, { results: results.map(toResult) }),
  );
}

function toResult(result: PartResult<ReportAgentResponse>): AgentReportResult {
  return create(AgentReportResultSchema, {
    result:
      "value" in result ? { case: "applied", value: result.value } : { case: "error", value: result.error },
  });
}

async function applyAgentReport(
  { leaseMs }: LeaseDependencies,
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredLease,
  req: ReportAgentRequest,
): Promise<ReportAgentResponse> {
  requireWorkKind(lease, WorkKind.AGENT, "an agent run");
  const expiresAt = tx.now + leaseMs;
  await renewLease(tx, lease.id, expiresAt);
  const stored = await findAgentExecution(tx.db, scope, lease.subject_id);
  const isOver = !stored || hasStopped(stored.execution);
  const lastSequence = isOver
    ? (stored?.lastSequence ?? 0)
    : await applyReport(tx, scope, lease, stored, req);
  // The report may have stopped the environment, and the agent execution with it.
  const { stop, giveBack } = ordersOf(await findLease(tx.db, scope, lease.id));
  return create(ReportAgentResponseSchema, {
    expiresAt: timestampFromMs(expiresAt),
    stop: isOver || stop,
    giveBack: !isOver && giveBack,
    lastSequence: BigInt(lastSequence),
  });
}

/** Applies a report to an agent execution that has not stopped. @returns the sequence number of the last block */
async function applyReport(
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredLease,
  found: StoredAgentExecution,
  req: ReportAgentRequest,
): Promise<number> {
  const isPending = phaseOfAgentExecution(found.execution) === Phase.PENDING;
  const stored = isPending ? await reportEnvironmentOfAgent(tx, scope, found, req.environment) : found;
  const hasBegun = stored !== found;
  const hasSeen = await acknowledge(tx, stored.execution.id, req.seenInputIds, lease.fence);
  const lastSequence = await appendBlocks(tx, lease, stored, req);
  const slot = await updateProgress(tx, scope, lease, stored, req);
  const startsWaiting = await applyReportedState(tx, scope, stored, req);
  await updateIdleSince(tx, lease, { slot, startsWaiting, phase: phaseAfter(stored, req) });
  // Not for a process that was just started: it may repeat the request of an earlier process.
  if (startsWaiting && (await findLastSeenId(tx.db, stored.execution.id, lease.fence)) !== undefined)
    await cancelApprovals(
      tx,
      scope,
      { agentExecutionId: stored.execution.id },
      "the turn that asked is over",
    );
  if (!isPending) await reportEnvironment(tx, scope, stored.environmentId, req.environment);
  const hasProgressed = hasBegun || startsWaiting || lastSequence > stored.lastSequence;
  // Only attempts without progress count, and this one made progress. But while an input is unseen, the output may
  // come from a start that fails on that input, like the previous one.
  if (hasSeen || (hasProgressed && !(await hasUnseenInput(tx.db, stored.execution.id)))) {
    await resetAttempts(tx, lease.id);
  }
  return lastSequence;
}

/**
 * Marks the inputs that the agent has seen.
 *
 * @returns whether at least one was newly marked
 * @throws DomainError VALUE_UNUSABLE for an input that was not delivered
 */
async function acknowledge(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  inputIds: readonly string[],
  fence: number,
): Promise<boolean> {
  let hasNew = false;
  for (const [index, inputId] of inputIds.entries()) {
    const { input } = (await findInput(tx.db, executionId, inputId)) ?? {};
    if (input?.receipt === Receipt.SEEN) continue;
    requireDelivered(input?.receipt, index);
    // The outcome of an approval is marked without a lease: the turn remains that of the previous input.
    await setInputSeen(tx, executionId, inputId, input?.input.case === "approval" ? 0 : fence);
    hasNew = true;
  }
  // Another input may be delivered now.
  if (hasNew) tx.touch(executionId);
  return hasNew;
}

async function appendBlocks(
  tx: WriteTransaction,
  { fence }: StoredLease,
  { execution, lastSequence }: StoredAgentExecution,
  { blocks }: ReportAgentRequest,
): Promise<number> {
  if (blocks.length === 0) return lastSequence;
  const inputId = (await findLastSeenId(tx.db, execution.id, fence)) ?? "";
  const added = newBlocks(blocks, { lastSequence, inputId, now: tx.now });
  await appendOutput(tx, execution.id, added);
  return lastSequence + added.length;
}

/**
 * Updates the usage, including that of the goal. Time is counted only when a report arrives: at the end of a turn,
 * and whenever the agent reports its usage.
 *
 * @returns the slot afterwards
 */
async function updateProgress(
  tx: WriteTransaction,
  scope: Scope,
  { fence }: StoredLease,
  { execution, progress, stepKey }: StoredAgentExecution,
  { usage, mode, currentActivity, state, canResume, forkAbility }: ReportAgentRequest,
): Promise<AgentProgress["slot"]> {
  // When a step's agent waits, the step ends, so its slot is never shared.
  const isShared = stepKey === null && (canResume ?? progress.slot !== undefined);
  const slot = isShared ? (Slot.SHARED as const) : undefined;
  const reported = updatedProgress(progress, { usage, mode, currentActivity, slot, forkAbility });
  const isInTurn = progress.goalUse.turn?.fence === fence;
  const inTurn = state === State.UNSPECIFIED ? isInTurn : state === State.RUNNING;
  const doneThrough =
    state === State.WAITING ? await endTurn(tx, scope, execution.id, fence, progress) : undefined;
  if (!reported && inTurn === isInTurn && doneThrough === undefined) return slot;
  const after = reported ?? progress;
  const goalUse = addGoalUse(progress.goalUse, {
    goal: execution.status?.goal,
    now: tx.now,
    fence,
    tokens: tokensBetween(progress, after),
    inTurn,
  });
  await setProgress(tx, execution.id, {
    ...after,
    goalUse,
    ...(doneThrough !== undefined && { doneThrough }),
  });
  return slot;
}

/**
 * Ends the turn of an agent that waits, and removes the data that was delivered with its inputs.
 * @returns the position of its last input; undefined when no turn has ended
 */
async function endTurn(
  tx: WriteTransaction,
  { organizationId }: Scope,
  executionId: Handle<"agent_execution">,
  fence: number,
  { doneThrough: after = 0 }: AgentProgress,
): Promise<number | undefined> {
  const last = await findLastSeen(tx.db, executionId, fence);
  if (!last || last.place <= after) return undefined;
  await removeTurnData(tx, executionId, { after, through: last.place });
  const turn = { after, through: last.place };
  const subject = { organizationId, id: executionId, at: tx.now, turn };
  tx.countOutcome({ of: "agent turn", as: "done", subject });
  return last.place;
}

interface Idleness {
  readonly slot: AgentProgress["slot"];
  readonly startsWaiting: boolean;
  readonly phase: Phase;
}

/** Records since when an agent that can give back its slot has been waiting for input, or that it is not waiting. */
async function updateIdleSince(
  tx: WriteTransaction,
  { id, idle_since: before, stop }: StoredLease,
  { slot, startsWaiting, phase }: Idleness,
): Promise<void> {
  const isIdle = slot !== undefined && phase === Phase.WAITING_FOR_INPUT && stop === 0;
  const since = startsWaiting ? tx.now : (before ?? tx.now);
  const after = isIdle ? since : null;
  if (after !== before) await setIdleSince(tx, id, after);
}

function phaseAfter({ execution }: StoredAgentExecution, { state }: ReportAgentRequest): Phase {
  if (state === State.RUNNING) return Phase.RUNNING;
  return state === State.WAITING ? Phase.WAITING_FOR_INPUT : phaseOfAgentExecution(execution);
}
