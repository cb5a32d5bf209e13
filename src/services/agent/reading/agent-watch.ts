import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AgentExecution,
  AgentExecutionSchema,
  type AgentOutputBlock,
  AgentOutputView,
} from "#gen/service/v1/agent_pb.js";
import type {
  WatchAgentExecutionRequest,
  WatchAgentExecutionResponseSchema,
} from "#gen/service/v1/agent_service_pb.js";
import { hasStopped } from "../../../domain/agent/agent-execution.ts";
import { requireReachedSequence } from "../../../domain/agent/agent-output.ts";
import { foldBlock, REPLACED_KEYS } from "../../../domain/agent/agent-output-fold.ts";
import { shuttingDown } from "../../../domain/error.ts";
import { type OutputPart, partsAfter } from "../../../store/agent/agent-conversation.ts";
import { findOutput } from "../../../store/agent/agent-output.ts";
import { findChangedOutput, findFolded } from "../../../store/agent/agent-output-list.ts";
import type { Reader } from "../../../store/store.ts";
import { rightsOf } from "../../../store/topics.ts";
import { revalidate } from "../../call/authenticated-caller.ts";
import { callerOf, streamBegunKey } from "../../call/call.ts";
import { createNotifier, type Subscribe } from "../../call/notifier.ts";
import { streamSignalOf } from "../../call/revocation-monitor.ts";
import type { StreamDependencies } from "../../call/stream-dependencies.ts";
import { findConversation } from "./agent-conversation.ts";
import { getReadableAgentExecution, presentAgentExecution } from "./agent-reading.ts";

/** Number of blocks read at a time, each of at most 2 MiB. It bounds the memory of a stream with a slow client. */
const BLOCKS_PER_READ = 16;
/**
 * Number of folded blocks that a stream keeps in memory, so that it need not read earlier blocks for their next
 * change.
 */
const KEPT_BLOCKS = 4;

type News = NonNullable<MessageInitShape<typeof WatchAgentExecutionResponseSchema>["news"]>;

/**
 * Streams an agent execution and its output: the agent execution first and after each change, and each block once and
 * in order. The stream ends when the agent execution has stopped and everything was sent.
 *
 * @throws DomainError NOT_FOUND, also when the agent execution is removed in the meantime or the caller may no longer
 * read it; VALUE_UNUSABLE for a sequence number that does not exist yet; UNAVAILABLE when the server drains
 */
export async function* watchAgentExecution(
  { store, draining, now }: StreamDependencies,
  { agentExecutionId: id, afterSequence, view }: WatchAgentExecutionRequest,
  ctx: HandlerContext,
): AsyncGenerator<{ news: News }> {
  let caller = callerOf(ctx);
  let haveRightsChanged = false;
  let parts: readonly OutputPart[] | undefined;
  const ended = streamSignalOf(ctx);
  const subscribe: Subscribe = (wake) => {
    const unsubscribe = store.onChange(id, wake);
    const unsubscribeRights = store.onChange(rightsOf(caller), () => {
      haveRightsChanged = true;
      wake();
    });
    return () => {
      unsubscribe();
      unsubscribeRights();
    };
  };
  const notifier = createNotifier(subscribe, [ended, draining]);
  const sentState = createSentState();
  const output = view === AgentOutputView.FOLDED ? createFoldedOutput() : ALL_OUTPUT;
  let after = Number(afterSequence);
  let isBehind = true;
  try {
    for (;;) {
      const changed = notifier.next();
      ended.throwIfAborted();
      if (draining.aborted) throw shuttingDown();
      if (haveRightsChanged) {
        haveRightsChanged = false;
        caller = await revalidate(store.reader, caller, now());
        parts = undefined;
      }
      // Read before the blocks, so that the blocks contain all output from before its end.
      const stored = await getReadableAgentExecution(store.reader, caller, id);
      requireReachedSequence(after, stored.lastSequence);
      const agentExecution = await presentAgentExecution(store.reader, caller, stored);
      ctx.values.get(streamBegunKey)();
      if (sentState.hasChanged(agentExecution))
        yield { news: { case: "agentExecution", value: agentExecution } };
      parts ??= await findConversation(store.reader, caller, stored);
      const db = isBehind ? store.longReader : store.reader;
      const blocks = await findInParts(parts, after, (part, limit) => output.find(db, part, after, limit));
      isBehind = blocks.length === BLOCKS_PER_READ;
      for (const block of blocks) {
        yield { news: { case: "block", value: await block.read() } };
        after = block.sequence;
      }
      if (blocks.length === BLOCKS_PER_READ) continue;
      if (hasStopped(agentExecution)) return;
      await changed;
    }
  } finally {
    notifier.close();
  }
}

/** A block of a stream, and the number of the stored block that it represents. */
interface SentBlock {
  readonly sequence: number;
  read(): AgentOutputBlock | Promise<AgentOutputBlock>;
}

/** Returns the next blocks of a conversation, up to {@link BLOCKS_PER_READ}. */
async function findInParts(
  parts: readonly OutputPart[],
  after: number,
  find: (part: OutputPart, limit: number) => Promise<readonly SentBlock[]>,
): Promise<readonly SentBlock[]> {
  const blocks: SentBlock[] = [];
  for (const part of partsAfter(parts, after)) {
    blocks.push(...(await find(part, BLOCKS_PER_READ - blocks.length)));
    if (blocks.length === BLOCKS_PER_READ) break;
  }
  return blocks;
}

/** Finds the next blocks of a part after a number, in a view. */
interface Output {
  find(db: Reader, part: OutputPart, after: number, limit: number): Promise<readonly SentBlock[]>;
}

const ALL_OUTPUT: Output = {
  async find(db, part, after, limit) {
    const blocks = await findOutput(db, part, after, limit);
    return blocks.map((block) => ({ sequence: Number(block.sequence), read: () => block }));
  },
};

function createFoldedOutput(): Output {
  /** Folded blocks by their executions and keys, the most recently changed last. */
  const kept = new Map<string, AgentOutputBlock>();
  const keep = (key: string, block: AgentOutputBlock) => {
    kept.delete(key);
    kept.set(key, block);
    const [oldest] = kept.keys();
    if (kept.size > KEPT_BLOCKS && oldest !== undefined) kept.delete(oldest);
  };
  return {
    async find(db, part, after, limit) {
      const { executionId } = part;
      const changed = await findChangedOutput(db, part, after, limit);
      return changed.map(({ key, block }) => {
        const sequence = Number(block.sequence);
        const read = async () => {
          if (key === null || REPLACED_KEYS.includes(key)) return foldBlock(undefined, block);
          const name = `${executionId} ${key}`;
          const start = { key, before: kept.get(name), through: sequence };
          const folded = (await findFolded(db, executionId, start)) ?? foldBlock(undefined, block);
          keep(name, folded);
          return folded;
        };
        return { sequence, read };
      });
    },
  };
}

/** Remembers the last state that a stream has sent. */
function createSentState() {
  let last: Buffer | undefined;
  return {
    hasChanged(execution: AgentExecution): boolean {
      const bytes = Buffer.from(toBinary(AgentExecutionSchema, execution));
      const hasChanged = !last?.equals(bytes);
      last = bytes;
      return hasChanged;
    },
  };
}
