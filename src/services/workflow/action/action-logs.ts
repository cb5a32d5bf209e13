import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import type {
  StreamActionLogsRequest,
  StreamActionLogsResponseSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { notFound, shuttingDown } from "../../../domain/error.ts";
import { phaseOf } from "../../../domain/workflow/execution/workflow-action.ts";
import { isFinalAction } from "../../../domain/workflow/execution/workflow-transitions.ts";
import { findLogChunks } from "../../../store/workflow/step-log.ts";
import { findAction } from "../../../store/workflow/workflow-action.ts";
import { findExecution } from "../../../store/workflow/workflow-execution.ts";
import { callerOf, streamBegunKey } from "../../call/call.ts";
import { createNotifier } from "../../call/notifier.ts";
import { type LogPosition, logPositionKey } from "../../call/plain-stream.ts";
import { streamSignalOf } from "../../call/revocation-monitor.ts";
import type { StreamDependencies } from "../../call/stream-dependencies.ts";

/** Number of chunks read at a time, each of at most 64 KiB. It bounds the memory of a stream with a slow client. */
const CHUNKS_PER_READ = 16;

/** Maximum index of a step (contract, WorkflowAction.steps). */
const MAX_STEP_INDEX = 49;

/**
 * Streams the output of an action's steps in its newest attempt, step by step. With `follow`, the stream continues
 * until the action ends; when another attempt begins, it restarts with the output of that attempt.
 *
 * @throws DomainError NOT_FOUND, also when the action is removed in the meantime; UNAVAILABLE when the server drains
 */
export async function* streamActionLogs(
  { store, draining }: StreamDependencies,
  { workflowExecutionActionId: id, stepIndex, afterOffset, follow }: StreamActionLogsRequest,
  ctx: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof StreamActionLogsResponseSchema>> {
  const caller = callerOf(ctx);
  const ended = streamSignalOf(ctx);
  const notifier = createNotifier((wake) => store.onChange(id, wake), [ended, draining]);
  const lastStep = stepIndex ?? MAX_STEP_INDEX;
  const resumed = ctx.values.get(logPositionKey);
  let position: Pick<LogPosition, "stepIndex" | "offset"> = resumed ?? {
    stepIndex: stepIndex ?? 0,
    offset: Number(afterOffset),
  };
  let attempt = resumed?.attempt;
  let isFound = false;
  let isBehind = true;
  const next = async () => {
    // Read before the chunks, so that the chunks contain all output from before its end.
    const action = await findAction(store.reader, caller, id);
    if (!action) throw notFound("workflow execution action");
    // Checked only once: if access is lost later, the stream ends when the rows are gone.
    if (!isFound && !(await findExecution(store.reader, caller, executionIdOf(action))))
      throw notFound("workflow execution action");
    isFound = true;
    const newest = attemptOf(action);
    if (attempt !== undefined && attempt !== newest) position = { stepIndex: stepIndex ?? 0, offset: 0 };
    attempt = newest;
    const owner = { actionId: action.id, attempt };
    const db = isBehind ? store.longReader : store.reader;
    const chunks = await findLogChunks(db, owner, position, lastStep, CHUNKS_PER_READ);
    isBehind = chunks.length === CHUNKS_PER_READ;
    return { pieces: chunks, attempt, isOver: isFinalAction(phaseOf(action)) };
  };
  try {
    for (;;) {
      const notified = notifier.next();
      ended.throwIfAborted();
      const { pieces, attempt: currentAttempt, isOver } = await next();
      ctx.values.get(streamBegunKey)();
      for (const { stepIndex: step, offset, data } of pieces) {
        const known = step === position.stepIndex ? position.offset : 0;
        const leftOutBytes = BigInt(offset - known);
        yield { stepIndex: step, offset: BigInt(offset), data, attempt: currentAttempt, leftOutBytes };
        position = { stepIndex: step, offset: offset + data.length };
      }
      if (pieces.length > 0) continue;
      if (!follow || isOver) return;
      if (draining.aborted) throw shuttingDown();
      await notified;
    }
  } finally {
    notifier.close();
  }
}

function executionIdOf({ metadata }: WorkflowExecutionAction): string {
  return metadata?.workflowExecutionId ?? "";
}

function attemptOf({ status }: WorkflowExecutionAction): number {
  return status?.attempt ?? 0;
}
