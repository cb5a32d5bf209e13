import type { DescMethod } from "@bufbuild/protobuf";
import { AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import type {
  WatchAgentExecutionRequest,
  WatchAgentExecutionResponse,
} from "#gen/service/v1/agent_service_pb.js";
import type { WatchEventsRequest, WatchEventsResponse } from "#gen/service/v1/event_service_pb.js";
import type {
  StreamActionLogsRequest,
  StreamActionLogsResponse,
} from "#gen/service/v1/workflow_service_pb.js";

/** The position in a stream, and how to resume from it. */
export interface Resumption<I, O> {
  /**
   * Accepts a message and removes its part that was received before.
   * @returns whether the message contains something new
   */
  accept(message: O): boolean;
  /** Returns a value that changes when a message advances the stream. Not every new message does. */
  position(): unknown;
  /** Changes the request so that the next stream continues after what was accepted. */
  resume(request: I): void;
  /** Returns whether the stream is complete if it ends now without an error. */
  isComplete(): boolean;
}

/** By the full name of the operation: importing the services would add all of them to each page. */
const RESUMPTIONS: Readonly<Record<string, (request: never) => Resumption<never, never>>> = {
  "service.v1.EventService/WatchEvents": resumeEvents,
  "service.v1.AgentService/WatchAgentExecution": resumeAgentExecution,
  "service.v1.WorkflowService/StreamActionLogs": resumeActionLogs,
};

/** Returns how to resume a stream of an operation. @throws TypeError for an operation that cannot be resumed */
export function createResumption<I, O>({ parent, name }: DescMethod, request: I): Resumption<I, O> {
  const make = RESUMPTIONS[`${parent.typeName}/${name}`];
  if (make === undefined) throw new TypeError(`${name} returns no stream that resumes`);
  return make(request as never) as unknown as Resumption<I, O>;
}

/** Events never end. A stream that is interrupted before its first message starts at the present again. */
function resumeEvents(): Resumption<WatchEventsRequest, WatchEventsResponse> {
  let sequence: bigint | undefined;
  return {
    accept(message) {
      sequence = message.sequence;
      return true;
    },
    position: () => sequence,
    resume(request) {
      if (sequence !== undefined) request.afterSequence = sequence;
    },
    isComplete: () => false,
  };
}

/** The run itself has no number: each stream sends its current state again. */
function resumeAgentExecution({
  afterSequence,
}: WatchAgentExecutionRequest): Resumption<WatchAgentExecutionRequest, WatchAgentExecutionResponse> {
  let sequence = afterSequence;
  let hasStopped = false;
  return {
    accept({ news }) {
      if (news.case === "block") sequence = news.value.lastSequence || news.value.sequence;
      if (news.case === "agentExecution") hasStopped = news.value.status?.phase === Phase.STOPPED;
      return true;
    },
    position: () => sequence,
    resume(request) {
      request.afterSequence = sequence;
    },
    isComplete: () => hasStopped,
  };
}

/**
 * Logs start again with the first step, since an offset would also apply to another attempt that has begun in the
 * meantime. The pieces may then be cut differently: a server keeps at most 1 MiB of each step, and removes the middle
 * of a longer log.
 */
function resumeActionLogs(): Resumption<StreamActionLogsRequest, StreamActionLogsResponse> {
  let last: { readonly attempt: number; readonly stepIndex: number; readonly end: bigint } | undefined;
  return {
    accept(piece) {
      const { attempt, stepIndex, offset, data } = piece;
      const before = last?.attempt === attempt ? last : undefined;
      if (before && stepIndex < before.stepIndex) return false;
      const known = before?.stepIndex === stepIndex ? before.end : 0n;
      const end = offset + BigInt(data.length);
      if (end <= known) return false;
      // For the first piece, only the server knows what is missing before it.
      if (last) piece.leftOutBytes = offset > known ? offset - known : 0n;
      if (offset < known) {
        piece.offset = known;
        piece.data = data.subarray(Number(known - offset));
      }
      last = { attempt, stepIndex, end };
      return true;
    },
    position: () => last,
    resume(request) {
      if (last) request.afterOffset = 0n;
    },
    isComplete: () => true,
  };
}
