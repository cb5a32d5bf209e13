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

/** How far a stream has come, and how it goes on. */
export interface Resumption<I, O> {
  /**
   * Takes a message into account, from which it removes what was there before.
   * @returns whether anything of it is new
   */
  accept(message: O): boolean;
  /** Returns what differs once a message has brought the stream forward, which not each new one does. */
  position(): unknown;
  /** Changes the request so that the next stream goes on behind what was accepted. */
  resume(request: I): void;
  /** Returns whether a stream that ends now without an error has ended for good. */
  isComplete(): boolean;
}

/** By the full name of the operation: to import the services would put all of them into each page. */
const RESUMPTIONS: Readonly<Record<string, (request: never) => Resumption<never, never>>> = {
  "service.v1.EventService/WatchEvents": resumeEvents,
  "service.v1.AgentService/WatchAgentExecution": resumeAgentExecution,
  "service.v1.WorkflowService/StreamActionLogs": resumeActionLogs,
};

/** Returns how a stream of an operation goes on. @throws TypeError when the operation is none that resumes */
export function createResumption<I, O>({ parent, name }: DescMethod, request: I): Resumption<I, O> {
  const make = RESUMPTIONS[`${parent.typeName}/${name}`];
  if (make === undefined) throw new TypeError(`${name} returns no stream that resumes`);
  return make(request as never) as unknown as Resumption<I, O>;
}

/** Events go on for ever. One that was cut before its first message begins with the present again. */
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

/** The run itself has no number: it comes again with each stream, as it is then. */
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
 * Logs begin again with the first step, since an offset would hold for another attempt that has begun meanwhile. Pieces may
 * be cut elsewhere then: the middle of a long log goes. A server keeps at most 1 MiB of each step.
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
      // Of the first piece the server knows what is missing before it.
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
