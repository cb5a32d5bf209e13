import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { AgentForkAbility as Ability } from "#gen/service/v1/agent_pb.js";
import {
  type ForkAgentExecutionRequest,
  ForkAgentExecutionResponseSchema,
  StartAgentRequestSchema,
} from "#gen/service/v1/agent_service_pb.js";
import {
  blockUnreadable,
  type ForkPoint,
  inMiddleOfTurn,
  requireBetweenTurns,
  requireForkable,
  requireOwnEnd,
} from "../../domain/agent/conversation/agent-fork.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { findContinuation, partsAfter } from "../../store/agent/agent-conversation.ts";
import { findLastSeenOf } from "../../store/agent/agent-delivery.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findOutput } from "../../store/agent/agent-output.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { requireOwnership, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { isInTurn } from "./agent-lost-turn.ts";
import { continuationOf, conversationIdOf } from "./agent-resume.ts";
import { startRun } from "./agent-start.ts";
import { findConversation } from "./reading/agent-conversation.ts";
import { getReadableAgentExecution } from "./reading/agent-reading.ts";

/** Starts an agent execution that forks the conversation of another, which continues unchanged. */
export function forkAgentExecution(
  { store }: Pick<ServiceDependencies, "store">,
  req: ForkAgentExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const stored = await getReadableAgentExecution(tx.db, caller, req.agentExecutionId);
    requireOwnership(ctx, stored.execution.metadata?.creator);
    const { name, userInput, turnOptions } = req;
    const start = create(StartAgentRequestSchema, {
      name,
      ...(userInput && { userInput }),
      ...(turnOptions && { turnOptions }),
    });
    const { sequence, fork } = await resolveFork(tx, caller, stored, req.sequence);
    const from = { id: stored.execution.id, sequence, isFork: true };
    const continuation = await continuationOf(tx, caller, stored, start, from);
    const agentExecutionId = await startRun(tx, caller, start, { ...continuation, fork });
    return create(ForkAgentExecutionResponseSchema, { agentExecutionId });
  });
}

/** Returns the last block of the original conversation that a fork includes, and the point at which its agent forks. */
async function resolveFork(
  tx: WriteTransaction,
  caller: Caller,
  stored: StoredAgentExecution,
  asked: bigint | undefined,
): Promise<{ readonly sequence: number; readonly fork: ForkPoint }> {
  const { execution, environmentId, lastSequence, progress } = stored;
  const ability = progress.forkAbility ?? Ability.UNSPECIFIED;
  const place = { lastSequence, asked: asked === undefined ? undefined : Number(asked) };
  const sequence = requireForkable(execution, ability, place);
  requireOwnEnd(execution, ability, await findContinuation(tx.db, caller, environmentId, execution.id));
  if (sequence < lastSequence) return { sequence, fork: await findPoint(tx, caller, stored, sequence) };
  requireBetweenTurns(execution, await isInTurn(tx, caller, stored));
  return { sequence, fork: await findEnd(tx, caller, stored) };
}

/** Returns the end of the turn whose last block has the given number. */
async function findPoint(
  tx: WriteTransaction,
  caller: Caller,
  stored: StoredAgentExecution,
  sequence: number,
): Promise<ForkPoint> {
  const [part] = partsAfter(await findConversation(tx.db, caller, stored), sequence - 1);
  const [block, next] = part ? await findOutput(tx.db, part, sequence - 1, 2) : [];
  const run = part && (await findAgentExecution(tx.db, caller, part.executionId));
  if (!run || block?.sequence !== BigInt(sequence)) throw blockUnreadable();
  if (next?.inputId === block.inputId) throw inMiddleOfTurn(stored.execution, sequence);
  const { inputId } = block;
  const conversationId = conversationIdOf(run.execution);
  if (inputId !== "") return { conversationId, agentExecutionId: run.execution.id, inputId };
  const before = await findEarlier(tx, caller, run);
  return before ? findEnd(tx, caller, before) : { conversationId, agentExecutionId: "", inputId: "" };
}

/** Returns the end of the last turn of an execution's conversation. */
async function findEnd(tx: WriteTransaction, scope: Scope, stored: StoredAgentExecution): Promise<ForkPoint> {
  const conversationId = conversationIdOf(stored.execution);
  for (let run: StoredAgentExecution | undefined = stored; run; run = await findEarlier(tx, scope, run)) {
    const inputId = await findLastSeenOf(tx.db, run.execution.id);
    if (inputId !== undefined) return { conversationId, agentExecutionId: run.execution.id, inputId };
  }
  return { conversationId, agentExecutionId: "", inputId: "" };
}

/**
 * Returns the previous execution in the conversation; undefined for the first, or when the previous one was removed.
 */
async function findEarlier(
  tx: WriteTransaction,
  scope: Scope,
  { earlier }: StoredAgentExecution,
): Promise<StoredAgentExecution | undefined> {
  return earlier && !earlier.isFork ? findAgentExecution(tx.db, scope, earlier.id) : undefined;
}
