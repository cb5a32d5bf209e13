import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type AgentExecution, AgentExecutionSchema } from "#gen/service/v1/agent_pb.js";
import type {
  WatchAgentExecutionRequest,
  WatchAgentExecutionResponseSchema,
} from "#gen/service/v1/agent_service_pb.js";
import { hasStopped } from "../../domain/agent/agent-execution.ts";
import { valueUnusable } from "../../domain/error.ts";
import { findOutput } from "../../store/agent/agent-output.ts";
import { rightsOf } from "../../store/topics.ts";
import { revalidate } from "../call/authenticated-caller.ts";
import { callerOf, streamBegunKey } from "../call/call.ts";
import { createNotifier, type Subscribe } from "../call/notifier.ts";
import { streamSignalOf } from "../call/revocation-monitor.ts";
import { type StreamDependencies, shuttingDown } from "../call/stream-dependencies.ts";
import { getReadableAgentExecution, presentAgentExecution } from "./agent-reading.ts";

/** Blocks read at a time, 128 KiB each at most; it bounds the memory of a stream that its client reads slowly. */
const BLOCKS_A_READ = 32;

type News = NonNullable<MessageInitShape<typeof WatchAgentExecutionResponseSchema>["news"]>;

/**
 * A run and what its agent answers: the run first and whenever it has changed,
 * each block once and in order. The stream ends once the run has stopped and all
 * was sent.
 *
 * @throws DomainError NOT_FOUND, also when the run is removed meanwhile or the
 *   caller may read it no more; VALUE_UNUSABLE for a number that the run has not
 *   reached; UNAVAILABLE when the server drains
 */
export async function* watchAgentExecution(
  { store, draining, now }: StreamDependencies,
  { agentExecutionId: id, afterSequence }: WatchAgentExecutionRequest,
  ctx: HandlerContext,
): AsyncGenerator<{ news: News }> {
  let caller = callerOf(ctx);
  let haveRightsChanged = false;
  const ended = streamSignalOf(ctx);
  const subscribe: Subscribe = (wake) => {
    const leave = store.onChange(id, wake);
    const leaveRights = store.onChange(rightsOf(caller), () => {
      haveRightsChanged = true;
      wake();
    });
    return () => {
      leave();
      leaveRights();
    };
  };
  const bell = createNotifier(subscribe, [ended, draining]);
  const told = createTold();
  let after = Number(afterSequence);
  try {
    for (;;) {
      const rung = bell.next();
      ended.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      if (haveRightsChanged) {
        haveRightsChanged = false;
        caller = await revalidate(store.reader, caller, now());
      }
      // The run is read first: what it answered before its end is then among the blocks.
      const stored = await getReadableAgentExecution(store.reader, caller, id);
      if (after > stored.lastSequence) throw notReached();
      const agentExecution = await presentAgentExecution(store.reader, caller, stored);
      ctx.values.get(streamBegunKey)();
      if (told.isNews(agentExecution)) yield { news: { case: "agentExecution", value: agentExecution } };
      const blocks = await findOutput(store.reader, id, after, BLOCKS_A_READ);
      for (const block of blocks) {
        yield { news: { case: "block", value: block } };
        after = Number(block.sequence);
      }
      if (blocks.length === BLOCKS_A_READ) continue;
      if (hasStopped(agentExecution)) return;
      await rung;
    }
  } finally {
    bell.close();
  }
}

/** Remembers what a stream has told of a run. */
function createTold() {
  let last: Buffer | undefined;
  return {
    isNews(execution: AgentExecution): boolean {
      const bytes = Buffer.from(toBinary(AgentExecutionSchema, execution));
      const isNews = !last?.equals(bytes);
      last = bytes;
      return isNews;
    },
  };
}

function notReached() {
  return valueUnusable("afterSequence", "afterSequence is a number that the agent run has not reached");
}
