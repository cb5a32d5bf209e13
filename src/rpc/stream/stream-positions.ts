import type { DescMethod, DescMethodServerStreaming, MessageShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { type ContextValues, createContextKey, type Interceptor } from "@connectrpc/connect";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { EventService } from "#gen/service/v1/event_service_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { valueUnusable } from "../../domain/error.ts";
import { logPositionKey } from "../../services/call/plain-stream.ts";

/** A position in a stream, as a client names it. */
interface Position {
  readonly text: string;
  /** The header or parameter that names it. */
  readonly field: string;
}

/** Numbers the messages of one operation, and continues a request after a number. */
interface Numbering<I, O> {
  /** @throws DomainError VALUE_UNUSABLE for a position that no message of the operation has */
  resume(req: I, position: Position, values: ContextValues): void;
  /** Returns a function that returns the position of each message of a stream, in order. */
  follow(req: I): (message: O) => string;
}

const RESUMABLE = new Map<DescMethod, Numbering<never, never>>([
  resumable(EventService.method.watchEvents, {
    resume: (req, position) => {
      req.afterSequence = sequenceIn(position);
    },
    follow: () => (message) => String(message.sequence),
  }),
  resumable(AgentService.method.watchAgentExecution, {
    resume: (req, position) => {
      req.afterSequence = sequenceIn(position);
    },
    follow: ({ afterSequence }) => {
      let reached = afterSequence;
      return ({ news }) => {
        // The run itself has no number: a client that resumes gets it again, as it is then.
        if (news.case === "block") reached = news.value.lastSequence || news.value.sequence;
        return String(reached);
      };
    },
  }),
  resumable(WorkflowService.method.streamActionLogs, {
    resume: ({ stepIndex }, position, values) => {
      const [, attempt, step, offset] = /^(\d{1,9})\.(\d{1,2})\.(\d{1,15})$/.exec(position.text) ?? [];
      if (offset === undefined || (stepIndex !== undefined && stepIndex !== Number(step))) {
        throw unusable(
          position,
          "the attempt, the step and the offset of a message of this stream, such as 1.0.4096",
        );
      }
      values.set(logPositionKey, {
        attempt: Number(attempt),
        stepIndex: Number(step),
        offset: Number(offset),
      });
    },
    follow: () => (message) =>
      `${message.attempt}.${message.stepIndex}.${message.offset + BigInt(message.data.length)}`,
  }),
]);

/** Returns whether a client can resume an operation after a position. Operations that change something cannot be resumed. */
export function isResumable(method: DescMethod): boolean {
  return RESUMABLE.has(method) && method.idempotency === Idempotency.NO_SIDE_EFFECTS;
}

/** Passes the positions of the messages of one stream from the interceptor that knows them to the code that writes them. */
export class StreamPositions {
  /** The position after which the client resumes; undefined for a stream from the start. */
  readonly resumed: Position | undefined;
  readonly #passed: string[] = [];

  /** @param field the header or parameter that names the position to resume at, for errors about it */
  constructor(resumed: string | undefined, field = "Last-Event-ID") {
    this.resumed = resumed === undefined ? undefined : { text: resumed, field };
  }

  put(position: string): void {
    this.#passed.push(position);
  }

  /** Returns the position of the next message. */
  take(): string {
    return this.#passed.shift() ?? "";
  }
}

/** The context key of the positions of a stream; undefined when the client does not need them. */
export const streamPositionsKey = createContextKey<StreamPositions | undefined>(undefined, {
  description: "positions of a stream",
});

/** Resumes a stream after the position that the client names, and records the position of each message. */
export const trackPositions: Interceptor = (next) => async (req) => {
  const positions = req.contextValues.get(streamPositionsKey);
  const known = RESUMABLE.get(req.method) as Numbering<unknown, unknown> | undefined;
  if (!positions || !known || !req.stream) return next(req);
  const { resumed } = positions;
  let positionOf: ((message: unknown) => string) | undefined;
  const begun = async function* <T>(messages: AsyncIterable<T>) {
    for await (const message of messages) {
      if (resumed !== undefined) known.resume(message, resumed, req.contextValues);
      positionOf = known.follow(message);
      yield message;
    }
  };
  const noted = async function* <T>(messages: AsyncIterable<T>) {
    for await (const message of messages) {
      positions.put(positionOf?.(message) ?? "");
      yield message;
    }
  };
  const res = await next({ ...req, message: begun(req.message) });
  return res.stream ? { ...res, message: noted(res.message) } : res;
};

function resumable<M extends DescMethodServerStreaming>(
  method: M,
  positions: Numbering<MessageShape<M["input"]>, MessageShape<M["output"]>>,
): [DescMethod, Numbering<never, never>] {
  return [method, positions as Numbering<never, never>];
}

function sequenceIn(position: Position): bigint {
  if (!/^\d{1,18}$/.test(position.text))
    throw unusable(position, "the id of a message of this stream, a whole number");
  return BigInt(position.text);
}

function unusable({ field }: Position, expected: string) {
  return valueUnusable(field, `${field} must be ${expected}; leave it out to begin where the request says`);
}
