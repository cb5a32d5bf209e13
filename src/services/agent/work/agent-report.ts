import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type ReportAgentRequest,
  ReportAgentResponseSchema,
  ReportAgentRequest_State as State,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import { hasStopped } from "../../../domain/agent/agent-execution.ts";
import { newBlocks } from "../../../domain/agent/agent-output.ts";
import { progressAfter, tokensBetween } from "../../../domain/agent/agent-progress.ts";
import { countedUse } from "../../../domain/agent/goal/agent-goal-use.ts";
import { valueUnusable } from "../../../domain/error.ts";
import { findLastSeenId, hasUnseenInput, setInputSeen } from "../../../store/agent/agent-delivery.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findInput } from "../../../store/agent/agent-input.ts";
import { appendOutput } from "../../../store/agent/agent-output.ts";
import { setProgress } from "../../../store/agent/agent-progress.ts";
import { findLease, type Lease, renewLease, resetAttempts } from "../../../store/runner/work-lease.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { reportEnvironment } from "../../environment/environment-work.ts";
import { type LeaseDependencies, requireWorkKind, writeUnderLease } from "../../runner/lease.ts";
import { recordHeartbeat } from "../../runner/runner-life.ts";
import { applyReportedState } from "./agent-reported-state.ts";

/** Takes what a runner reports of an agent run, all of it or nothing. Of one that has stopped nothing is taken. */
export async function reportAgent(deps: LeaseDependencies, req: ReportAgentRequest, ctx: HandlerContext) {
  await recordHeartbeat(deps, ctx);
  return writeUnderLease(deps, req, ctx, async (tx, scope, lease) => {
    requireWorkKind(lease, WorkKind.AGENT, "an agent run");
    const expiresAt = tx.now + deps.leaseMs;
    await renewLease(tx, lease.id, expiresAt);
    const run = await findAgentExecution(tx.db, scope, lease.subject_id);
    const isOver = !run || hasStopped(run.execution);
    const lastSequence = isOver ? (run?.lastSequence ?? 0) : await take(tx, scope, lease, run, req);
    // The report itself may have brought the environment down, and the run with it.
    const stop = isOver || (await findLease(tx.db, lease.id))?.stop === 1;
    return create(ReportAgentResponseSchema, {
      expiresAt: timestampFromMs(expiresAt),
      stop,
      lastSequence: BigInt(lastSequence),
    });
  });
}

/** @returns number of the block that the run has last */
async function take(
  tx: WriteTransaction,
  scope: Scope,
  lease: Lease,
  run: StoredAgentExecution,
  req: ReportAgentRequest,
): Promise<number> {
  const hasSeen = await acknowledge(tx, run.execution.id, req.seenInputIds, lease.fence);
  const lastSequence = await takeBlocks(tx, lease, run, req);
  await keepProgress(tx, lease, run, req);
  const hasComeToWait = await applyReportedState(tx, scope, run, req);
  await reportEnvironment(tx, scope, run.environmentId, req.environment);
  const hasMoved = hasComeToWait || lastSequence > run.lastSequence;
  // Attempts are counted of runs that come to nothing, and this one has come on. With an input that the agent has not
  // got it has not: its words may be those of a start that ends with that input, as the one before did.
  if (hasSeen || (hasMoved && !(await hasUnseenInput(tx.db, run.execution.id)))) {
    await resetAttempts(tx, lease.id);
  }
  return lastSequence;
}

/**
 * Notes which inputs the agent got.
 *
 * @returns whether any was news
 * @throws DomainError VALUE_UNUSABLE for one that was not delivered
 */
async function acknowledge(
  tx: WriteTransaction,
  executionId: string,
  inputIds: readonly string[],
  fence: number,
): Promise<boolean> {
  let hasNews = false;
  for (const [index, inputId] of inputIds.entries()) {
    const receipt = (await findInput(tx.db, executionId, inputId))?.input.receipt;
    if (receipt === Receipt.SEEN) continue;
    if (receipt !== Receipt.DELIVERED) {
      const field = `seenInputIds[${index}]`;
      throw valueUnusable(field, `${field} names an input that was not delivered`);
    }
    await setInputSeen(tx, executionId, inputId, fence);
    hasNews = true;
  }
  // Another input may be delivered now.
  if (hasNews) tx.touch(executionId);
  return hasNews;
}

async function takeBlocks(
  tx: WriteTransaction,
  { fence }: Lease,
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
 * Keeps what was used, for the goal too. Time is counted with news that are told
 * anyway: at the end of a turn, and whenever the agent tells what it used.
 */
async function keepProgress(
  tx: WriteTransaction,
  { fence }: Lease,
  { execution, progress }: StoredAgentExecution,
  { usage, mode, currentActivity, state }: ReportAgentRequest,
): Promise<void> {
  const told = progressAfter(progress, { usage, mode, currentActivity });
  const isInTurn = progress.goalUse.turn?.fence === fence;
  const inTurn = state === State.UNSPECIFIED ? isInTurn : state === State.RUNNING;
  if (!told && inTurn === isInTurn) return;
  const after = told ?? progress;
  const goalUse = countedUse(progress.goalUse, {
    goal: execution.status?.goal,
    now: tx.now,
    fence,
    tokens: tokensBetween(progress, after),
    inTurn,
  });
  await setProgress(tx, execution.id, { ...after, goalUse });
}
