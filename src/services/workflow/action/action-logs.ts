import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import type {
  StreamActionLogsRequest,
  StreamActionLogsResponseSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { notFound } from "../../../domain/error.ts";
import { phaseOf } from "../../../domain/workflow/execution/workflow-action.ts";
import { isFinalAction } from "../../../domain/workflow/execution/workflow-transitions.ts";
import { findLogPieces } from "../../../store/workflow/step-log.ts";
import { findAction } from "../../../store/workflow/workflow-action.ts";
import { callerOf, streamBegunKey } from "../../call/call.ts";
import { createNotifier } from "../../call/notifier.ts";
import { streamSignalOf } from "../../call/revocation-monitor.ts";
import type { StreamDependencies } from "../../call/stream-dependencies.ts";

/** Pieces read at a time, 64 KiB each at most; it bounds the memory of a stream that its client reads slowly. */
const PIECES_PER_READ = 16;

/** Highest place of a step (contract, WorkflowAction.steps). */
const LAST_STEP = 49;

/**
 * Streams the output of an action's steps in its newest attempt, step by step. A
 * stream that follows goes on until the action ends or the server drains; when
 * another attempt begins, it begins again with that.
 *
 * @throws DomainError NOT_FOUND, also when the action is removed meanwhile
 */
export async function* streamActionLogs(
  { store, draining }: StreamDependencies,
  { workflowExecutionActionId: id, stepIndex, afterOffset, follow }: StreamActionLogsRequest,
  ctx: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof StreamActionLogsResponseSchema>> {
  const caller = callerOf(ctx);
  const ended = streamSignalOf(ctx);
  const bell = createNotifier((wake) => store.onChange(id, wake), [ended, draining]);
  const lastStep = stepIndex ?? LAST_STEP;
  let position = { stepIndex: stepIndex ?? 0, offset: Number(afterOffset) };
  let attempt: number | undefined;
  const next = async () => {
    // The action is read first: what it printed before its end is then among the pieces.
    const action = await findAction(store.reader, caller, id);
    if (!action) throw notFound("workflow execution action");
    const newest = attemptOf(action);
    if (attempt !== undefined && attempt !== newest) position = { stepIndex: stepIndex ?? 0, offset: 0 };
    attempt = newest;
    const owner = { actionId: action.id, attempt };
    const pieces = await findLogPieces(store.reader, owner, position, lastStep, PIECES_PER_READ);
    return { pieces, attempt, isOver: isFinalAction(phaseOf(action)) };
  };
  try {
    for (;;) {
      const rung = bell.next();
      ended.throwIfAborted();
      const { pieces, attempt: printedIn, isOver } = await next();
      ctx.values.get(streamBegunKey)();
      for (const { stepIndex: step, offset, data } of pieces) {
        const known = step === position.stepIndex ? position.offset : 0;
        const leftOutBytes = BigInt(offset - known);
        yield { stepIndex: step, offset: BigInt(offset), data, attempt: printedIn, leftOutBytes };
        position = { stepIndex: step, offset: offset + data.length };
      }
      if (pieces.length > 0) continue;
      if (!follow || isOver || draining.aborted) return;
      await rung;
    }
  } finally {
    bell.close();
  }
}

function attemptOf({ status }: WorkflowExecutionAction): number {
  return status?.attempt ?? 0;
}
