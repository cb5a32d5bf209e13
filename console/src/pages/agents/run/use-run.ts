import { createClient } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";
import {
  type AgentExecution,
  AgentExecution_Phase,
  type AgentInput,
  AgentInputReceipt,
  type AgentOutputBlock,
  AgentOutputView,
} from "#gen/service/v1/agent_pb.js";
import { AgentService, type WatchAgentExecutionResponse } from "#gen/service/v1/agent_service_pb.js";
import { queries, transport } from "../../../api/server.tsx";
import { type StreamState, useStream } from "../../../api/stream.ts";

const agents = createClient(AgentService, transport);

/** What a page knows of a run's conversation. */
interface Conversation {
  readonly run: AgentExecution | undefined;
  /** The folded blocks by their sequence. */
  readonly blocks: readonly AgentOutputBlock[];
  /** The position in the stream. */
  readonly lastSequence: bigint;
}

const NOTHING: Conversation = { run: undefined, blocks: [], lastSequence: 0n };

const keyOf = (runId: string) => ["run", runId, "conversation"] as const;
const inputsKey = (runId: string) => ["run", runId, "inputs"] as const;

/** Maximum pages of inputs that are read; older ones are many thousands of blocks away. */
const MAX_PAGES = 20;

/** The queue of a run, and earlier inputs. */
export interface Inputs {
  /** All inputs in the order in which they were stored. */
  readonly inputs: readonly AgentInput[];
  /** Waiting inputs, in the order of their delivery. */
  readonly queue: readonly AgentInput[];
  readonly queueRevision: bigint;
}

/** Applies a message of the stream: a folded block replaces the one with the same number. */
function taken(before: Conversation, { news }: WatchAgentExecutionResponse): Conversation {
  if (news.case === "agentExecution") return { ...before, run: news.value };
  if (news.case !== "block") return before;
  const block = news.value;
  const isReplaced = (each: AgentOutputBlock): boolean =>
    each.sequence === block.sequence ||
    // Of plans and usage only the latest applies.
    ((block.block.case === "plan" || block.block.case === "usage") && each.block.case === block.block.case);
  const at = before.blocks.findIndex(isReplaced);
  const blocks =
    at === -1 ? [...before.blocks, block] : before.blocks.map((each, index) => (index === at ? block : each));
  const lastSequence = block.lastSequence > before.lastSequence ? block.lastSequence : before.lastSequence;
  return { ...before, blocks, lastSequence };
}

/** Follows a run: its conversation by a stream, which resumes after interruptions, and its inputs as they change. */
export function useRun(runId: string) {
  const conversation = useQuery({
    queryKey: keyOf(runId),
    // Only the stream adds content; a refetch keeps what is there.
    queryFn: () => queries.getQueryData<Conversation>(keyOf(runId)) ?? NOTHING,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
    initialData: NOTHING,
  });
  const first = useQuery({
    queryKey: ["run", runId, "state"],
    queryFn: ({ signal }) => agents.getAgentExecution({ agentExecutionId: runId }, { signal }),
  });
  const inputs = useQuery({ queryKey: inputsKey(runId), queryFn: () => readInputs(runId) });
  const state: StreamState = useStream({
    key: runId,
    slot: "page",
    pollKey: ["run", runId, "state"],
    open: (signal, onHeader) =>
      agents.watchAgentExecution(
        {
          agentExecutionId: runId,
          view: AgentOutputView.FOLDED,
          afterSequence: queries.getQueryData<Conversation>(keyOf(runId))?.lastSequence ?? 0n,
        },
        { signal, onHeader },
      ),
    onMessage(message) {
      queries.setQueryData<Conversation>(keyOf(runId), (before) => taken(before ?? NOTHING, message));
      // The run may have taken an input out of its queue.
      if (message.news.case === "agentExecution")
        void queries.invalidateQueries({ queryKey: inputsKey(runId) });
    },
    isFinal: () =>
      queries.getQueryData<Conversation>(keyOf(runId))?.run?.status?.phase === AgentExecution_Phase.STOPPED,
  });
  const run = newest(conversation.data.run, first.data?.agentExecution);
  return { run, first, blocks: conversation.data.blocks, inputs, state };
}

/** Returns the run as the stream reported it, unless a later reading is newer. */
function newest(
  streamed: AgentExecution | undefined,
  read: AgentExecution | undefined,
): AgentExecution | undefined {
  if (!streamed || !read) return streamed ?? read;
  return (read.status?.statusVersion ?? 0n) > (streamed.status?.statusVersion ?? 0n) ? read : streamed;
}

/** Reads the inputs of a run again. */
export const refreshInputs = (runId: string) => queries.invalidateQueries({ queryKey: inputsKey(runId) });

async function readInputs(agentExecutionId: string): Promise<Inputs> {
  const inputs: AgentInput[] = [];
  let token = "";
  // Reads the queue first: inputs delivered in the meantime then count as past, and appear once.
  const { inputs: waiting, queueRevision } = await agents.listAgentInputs({
    agentExecutionId,
    pagination: { pageSize: 100 },
  });
  for (let page = 0; page < MAX_PAGES; page++) {
    const read = await agents.listAgentInputs({
      agentExecutionId,
      includePast: true,
      pagination: { pageSize: 100, token },
    });
    inputs.push(...read.inputs);
    token = read.pagination?.nextToken ?? "";
    if (token === "") break;
  }
  const past = new Set(
    inputs.filter(({ receipt }) => receipt !== AgentInputReceipt.QUEUED).map(({ id }) => id),
  );
  return { inputs, queue: waiting.filter(({ id }) => !past.has(id)), queueRevision };
}
