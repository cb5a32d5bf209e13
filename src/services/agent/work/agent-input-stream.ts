import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type StreamInputsRequest,
  type StreamInputsResponse,
  StreamInputsResponseSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { isStopRequested, phaseOfAgentExecution } from "../../../domain/agent/agent-execution.ts";
import { nextInput, type QueuedInput, withoutInput } from "../../../domain/agent/agent-queue.ts";
import { leaseLost, shuttingDown } from "../../../domain/error.ts";
import { requireWorkKind } from "../../../domain/runner/lease.ts";
import {
  deliverInput,
  findLastSeenId,
  findUnseenInput,
  hasUnseenInput,
} from "../../../store/agent/agent-delivery.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findAgentExecutionHandle } from "../../../store/agent/agent-execution-search.ts";
import { findInput, findQueuedInputs, type StoredInput } from "../../../store/agent/agent-input.ts";
import { fillImages } from "../../../store/agent/agent-input-image.ts";
import { takeFirstTurn } from "../../../store/agent/agent-progress.ts";
import type { StoredLease } from "../../../store/runner/work-lease.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../../../store/store.ts";
import { callerOf, streamBegunKey } from "../../call/call.ts";
import { createNotifier } from "../../call/notifier.ts";
import { streamSignalOf } from "../../call/revocation-monitor.ts";
import { yieldToEventLoop } from "../../call/yield-to-event-loop.ts";
import { recordHeartbeat } from "../../runner/heartbeat.ts";
import { type LeaseDependencies, requireLease, writeUnderLease } from "../../runner/held-lease.ts";
import type { LeaseStreams } from "../../runner/lease-streams.ts";
import { readQueue, reorderQueue } from "../agent-queue.ts";
import { fillReview, reviewOf } from "../review/sent-review.ts";

/**
 * Streams the inputs of an agent execution to the runner that holds its lease: first those that were delivered and
 * not acknowledged, then each input when it is due. An input is marked as delivered before it is sent; after that it
 * can no longer be moved. The stream checks again when the agent execution changes and when the lease expires. It
 * ends when the lease has a newer stream.
 *
 * @throws DomainError LEASE_LOST; ACCOUNT_BLOCKED; PHASE_UNSUITABLE; UNAVAILABLE
 */
export async function* streamInputs(
  deps: LeaseDependencies,
  streams: LeaseStreams,
  req: StreamInputsRequest,
  ctx: HandlerContext,
): AsyncGenerator<StreamInputsResponse> {
  const { store, draining, now } = deps;
  const caller = callerOf(ctx);
  await recordHeartbeat(deps, ctx);
  const ended = streamSignalOf(ctx);
  const readLease = () => requireLease(store.reader, caller, req, now());
  const first = await readLease();
  requireWorkKind(first, WorkKind.AGENT, "an agent run");
  const executionId = await findAgentExecutionHandle(store.reader, caller, first.subject_id);
  if (executionId === undefined) throw leaseLost();
  const { replaced, close } = streams(first.id);
  const notifier = createNotifier((wake) => store.onChange(executionId, wake), [ended, draining, replaced]);
  let expiresAt = first.expires_at ?? 0;
  let sent = 0;
  let isHeld = true;
  try {
    for (;;) {
      const changed = notifier.next(Math.max(0, expiresAt - now()));
      ended.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      if (replaced.aborted) return;
      const lease = await readLease();
      if (lease.stop !== 0) return;
      expiresAt = lease.expires_at ?? 0;
      ctx.values.get(streamBegunKey)();
      // A queue is held only from a lost lease on: once it is not held, it need not be read again.
      isHeld &&= await isQueueHeld(store.reader, caller, executionId);
      if (isHeld) {
        await changed;
        continue;
      }
      for (let unseen = await findUnseenInput(store.reader, executionId, sent); unseen; ) {
        yield await toDelivery(store.reader, caller, executionId, unseen);
        sent = unseen.place;
        unseen = await findUnseenInput(store.reader, executionId, sent);
      }
      if (await findDueInput(store.reader, caller, executionId, lease))
        await deliverDue(deps, executionId, req, ctx);
      else await changed;
    }
  } finally {
    notifier.close();
    close();
  }
}

/** Returns whether the queue is held: nothing is delivered until somebody decides about a lost turn. */
async function isQueueHeld(
  db: Reader,
  scope: Scope,
  executionId: Handle<"agent_execution">,
): Promise<boolean> {
  const stored = await findAgentExecution(db, scope, executionId);
  return stored?.progress.lostTurn?.holdsQueue ?? false;
}

/**
 * Returns the input that is due. Steered messages and control inputs go into the current turn. All others wait until
 * the agent is idle: it has seen all delivered inputs, and it waits for input or has received none under this lease.
 */
async function findDueInput(
  db: Reader,
  scope: Scope,
  executionId: Handle<"agent_execution">,
  { fence }: StoredLease,
): Promise<{ readonly stored: StoredAgentExecution; readonly input: QueuedInput } | undefined> {
  const inputs = await findQueuedInputs(db, executionId);
  if (inputs.length === 0) return undefined;
  const stored = await findAgentExecution(db, scope, executionId);
  if (!stored || isStopRequested(stored.execution)) return undefined;
  const hasAll = !(await hasUnseenInput(db, executionId));
  const isWaiting = phaseOfAgentExecution(stored.execution) === Phase.WAITING_FOR_INPUT;
  const isIdle = hasAll && (isWaiting || (await findLastSeenId(db, executionId, fence)) === undefined);
  const input = nextInput({ revision: stored.queueRevision, inputs }, isIdle);
  return input && { stored, input };
}

/** Delivers the due input. Reads it again in the transaction, since the queue may have changed. */
async function deliverDue(
  deps: LeaseDependencies,
  executionId: Handle<"agent_execution">,
  req: StreamInputsRequest,
  ctx: HandlerContext,
): Promise<void> {
  await writeUnderLease(deps, req, ctx, async (tx, scope, lease) => {
    const due = await findDueInput(tx.db, scope, executionId, lease);
    // A runner that was asked for the slot ends the program: the next lease gets the input.
    if (!due || lease.stop !== 0) return;
    const { stored, input } = due;
    const { id } = stored.execution;
    const before = await readQueue(tx, stored);
    const turn = await resolveTurn(tx, id, input.id);
    await deliverInput(tx, id, input.id, { fence: lease.fence, turn });
    await reorderQueue(tx, id, before, withoutInput(before, input.id));
  });
}

/** Returns the turn of an input. The first turn has the options of the start unless its input has options. */
async function resolveTurn(tx: WriteTransaction, executionId: Handle<"agent_execution">, inputId: string) {
  const { input, turn = {} } = (await findInput(tx.db, executionId, inputId)) ?? {};
  // Neither a control input nor the outcome of an approval begins a turn.
  if (input?.input.case === "controlInput" || input?.input.case === "approval") return turn;
  const turnOptions = await takeFirstTurn(tx, executionId);
  return turnOptions && !turn.turnOptions ? { ...turn, turnOptions } : turn;
}

async function toDelivery(
  db: Reader,
  scope: Scope,
  executionId: Handle<"agent_execution">,
  { input, steer, turn }: StoredInput,
): Promise<StreamInputsResponse> {
  await fillImages(db, executionId, input, yieldToEventLoop);
  if (reviewOf(input)) {
    const { environmentId = "" } = (await findAgentExecution(db, scope, executionId)) ?? {};
    await fillReview(db, scope, environmentId, input);
  }
  const { turnOptions, extAgentSettings } = turn;
  return create(StreamInputsResponseSchema, {
    input,
    steer,
    ...(turnOptions && { turnOptions }),
    ...(extAgentSettings && { extAgentSettings }),
  });
}
