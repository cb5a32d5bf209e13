import type { DescMethod, DescMethodServerStreaming, MessageShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { type ContextValues, createContextKey, type Interceptor } from "@connectrpc/connect";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { EventService } from "#gen/service/v1/event_service_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { valueUnusable } from "../../domain/error.ts";
import { logPlaceKey } from "../../services/call/plain-stream.ts";

/** A place as its client names it. */
interface Place {
  readonly text: string;
  /** The header or parameter that names it. */
  readonly field: string;
}

/** Functions that number the messages of one operation, and that continue a request after a number. */
interface Places<I, O> {
  /** @throws DomainError VALUE_UNUSABLE for a place that no message of the operation has */
  resume(req: I, place: Place, values: ContextValues): void;
  /** Returns the function that gives the place of each message of a stream, in their order. */
  follow(req: I): (message: O) => string;
}

const PLACES = new Map<DescMethod, Places<never, never>>([
  placesOf(EventService.method.watchEvents, {
    resume: (req, place) => {
      req.afterSequence = sequenceIn(place);
    },
    follow: () => (message) => String(message.sequence),
  }),
  placesOf(AgentService.method.watchAgentExecution, {
    resume: (req, place) => {
      req.afterSequence = sequenceIn(place);
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
  placesOf(WorkflowService.method.streamActionLogs, {
    resume: ({ stepIndex }, place, values) => {
      const [, attempt, step, offset] = /^(\d{1,9})\.(\d{1,2})\.(\d{1,15})$/.exec(place.text) ?? [];
      if (offset === undefined || (stepIndex !== undefined && stepIndex !== Number(step))) {
        throw unusable(
          place,
          "the attempt, the step and the offset of a message of this stream, such as 1.0.4096",
        );
      }
      values.set(logPlaceKey, {
        attempt: Number(attempt),
        stepIndex: Number(step),
        offset: Number(offset),
      });
    },
    follow: () => (message) =>
      `${message.attempt}.${message.stepIndex}.${message.offset + BigInt(message.data.length)}`,
  }),
]);

/** Returns whether the messages of an operation have places, behind which it resumes; one that changes nothing has. */
export function hasPlaces(method: DescMethod): boolean {
  return PLACES.has(method) && method.idempotency === Idempotency.NO_SIDE_EFFECTS;
}

/** The places of the messages of one stream, from where they are known to where they are written. */
export class StreamPlaces {
  /** The place behind which the stream goes on, as its client names it. */
  readonly resumed: Place | undefined;
  readonly #passed: string[] = [];

  /** @param field the header or parameter that names the place to resume at, for errors about it */
  constructor(resumed: string | undefined, field = "Last-Event-ID") {
    this.resumed = resumed === undefined ? undefined : { text: resumed, field };
  }

  put(place: string): void {
    this.#passed.push(place);
  }

  /** Returns the place of the next message. */
  take(): string {
    return this.#passed.shift() ?? "";
  }
}

/** The context key of the places of a stream; undefined where nobody asks for them. */
export const streamPlacesKey = createContextKey<StreamPlaces | undefined>(undefined, {
  description: "places of a stream",
});

/** Lets a stream go on behind a place that its client names, and notes the place of each message. */
export const followPlaces: Interceptor = (next) => async (req) => {
  const places = req.contextValues.get(streamPlacesKey);
  const known = PLACES.get(req.method) as Places<unknown, unknown> | undefined;
  if (!places || !known || !req.stream) return next(req);
  const { resumed } = places;
  let placeOf: ((message: unknown) => string) | undefined;
  const begun = async function* <T>(messages: AsyncIterable<T>) {
    for await (const message of messages) {
      if (resumed !== undefined) known.resume(message, resumed, req.contextValues);
      placeOf = known.follow(message);
      yield message;
    }
  };
  const noted = async function* <T>(messages: AsyncIterable<T>) {
    for await (const message of messages) {
      places.put(placeOf?.(message) ?? "");
      yield message;
    }
  };
  const res = await next({ ...req, message: begun(req.message) });
  return res.stream ? { ...res, message: noted(res.message) } : res;
};

function placesOf<M extends DescMethodServerStreaming>(
  method: M,
  places: Places<MessageShape<M["input"]>, MessageShape<M["output"]>>,
): [DescMethod, Places<never, never>] {
  return [method, places as Places<never, never>];
}

function sequenceIn(place: Place): bigint {
  if (!/^\d{1,18}$/.test(place.text))
    throw unusable(place, "the id of a message of this stream, a whole number");
  return BigInt(place.text);
}

function unusable({ field }: Place, expected: string) {
  return valueUnusable(field, `${field} must be ${expected}; leave it out to begin where the request says`);
}
