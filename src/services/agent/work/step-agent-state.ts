import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type GetStepAgentRequest,
  GetStepAgentResponseSchema,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { type AgentOutputBlock, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { hasStopped, phaseOfAgentExecution } from "../../../domain/agent/agent-execution.ts";
import { appendText } from "../../../domain/agent/agent-output.ts";
import { notFound } from "../../../domain/error.ts";
import { requireWorkKind } from "../../../domain/runner/lease.ts";
import { wholeOutput } from "../../../store/agent/agent-conversation.ts";
import { hasUnseenInput } from "../../../store/agent/agent-delivery.ts";
import { findAgentExecution, type StoredAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findQueuedInputs } from "../../../store/agent/agent-input.ts";
import { findInterests } from "../../../store/agent/agent-interest.ts";
import { findOutput, findOutputBefore } from "../../../store/agent/agent-output.ts";
import type { Handle, Reader } from "../../../store/store.ts";
import { callerOf } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { requireLease } from "../../runner/held-lease.ts";
import { presentAgentExecution } from "../reading/agent-reading.ts";

/** The maximum length of an answer (contract, GetStepAgentResponse.last_answer). */
const MAX_ANSWER_CHARACTERS = 65_536;

/** Number of blocks read at a time. */
const BLOCKS_PER_READ = 64;

/** Returns the state of the agent execution of a step of the leased action. */
export async function getStepAgent(
  { store, now }: Pick<ServiceDependencies, "store" | "now">,
  req: GetStepAgentRequest,
  ctx: HandlerContext,
) {
  const db = store.reader;
  const caller = callerOf(ctx);
  const lease = await requireLease(db, caller, req, now());
  requireWorkKind(lease, WorkKind.ACTION, "an action");
  const stored = await findAgentExecution(db, caller, req.agentExecutionId);
  const belongsToAction =
    stored?.stepKey !== null && stored?.execution.metadata?.workflowActionId === lease.subject_id;
  if (!stored || !belongsToAction) throw notFound("agent execution");
  return create(GetStepAgentResponseSchema, {
    agentExecution: await presentAgentExecution(db, caller, stored),
    lastAnswer: await lastAnswer(db, stored),
    done: await isDone(db, stored),
  });
}

async function isDone(db: Reader, { execution }: StoredAgentExecution): Promise<boolean> {
  const { id } = execution;
  if (hasStopped(execution)) return true;
  if (phaseOfAgentExecution(execution) !== Phase.WAITING_FOR_INPUT || (await hasUnseenInput(db, id)))
    return false;
  if ((await findQueuedInputs(db, id)).length > 0) return false;
  return (await findInterests(db, id)).every((interest) => interest.user_message === 1);
}

/** Returns the text of the latest turn. */
async function lastAnswer(db: Reader, { execution, lastSequence }: StoredAgentExecution): Promise<string> {
  const begin = await findTurnBegin(db, execution.id, lastSequence);
  let answer = "";
  for (let after = begin - 1; after < lastSequence && answer.length < MAX_ANSWER_CHARACTERS; ) {
    const blocks = await findOutput(db, wholeOutput(execution.id), after, BLOCKS_PER_READ);
    if (blocks.length === 0) break;
    answer = appendText(answer, blocks, MAX_ANSWER_CHARACTERS);
    after += blocks.length;
  }
  return answer;
}

/** Returns the sequence number of the first block of the latest turn. */
async function findTurnBegin(
  db: Reader,
  executionId: Handle<"agent_execution">,
  lastSequence: number,
): Promise<number> {
  let begin = lastSequence + 1;
  let inputId: string | undefined;
  for (;;) {
    const blocks: AgentOutputBlock[] = await findOutputBefore(db, executionId, begin, BLOCKS_PER_READ);
    for (const block of blocks) {
      inputId ??= block.inputId;
      if (block.inputId !== inputId) return begin;
      begin = Number(block.sequence);
    }
    if (blocks.length < BLOCKS_PER_READ) return begin;
  }
}
