import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AgentInput,
  AgentInputSchema,
  type AgentMessage,
  AgentExecution_Phase as Phase,
  type UserInputBlock,
  type WakeEvent,
} from "#gen/service/v1/agent_pb.js";
import {
  type SendToAgentExecutionRequest,
  SendToAgentExecutionResponseSchema,
} from "#gen/service/v1/agent_service_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { hasStopped, isWantedStopped, phaseOfAgentExecution } from "../../domain/agent/agent-execution.ts";
import { acceptedMessage } from "../../domain/agent/agent-input.ts";
import { requireNoDeceptiveText } from "../../domain/deceptive-text.ts";
import {
  notFound,
  permissionDenied,
  phaseUnsuitable,
  queueChanged,
  valueUnusable,
} from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import {
  agentExecutionFacts,
  findAgentExecution,
  type StoredAgentExecution,
} from "../../store/agent/agent-execution.ts";
import { findInput, type InputTurn } from "../../store/agent/agent-input.ts";
import { findQueueRevision } from "../../store/agent/agent-progress.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { requireOwnership, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { handleControlInput } from "./agent-control-input.ts";
import { queueInput, requireQueueSpace } from "./agent-queue.ts";
import { runnerOf } from "./agent-reading.ts";
import { turnOfInput } from "./agent-turn.ts";
import { endUserMessageInterests, fireInterest } from "./agent-wake.ts";

/** What an input is sent with. */
interface Sending {
  readonly tx: WriteTransaction;
  readonly caller: Caller;
  readonly run: StoredAgentExecution;
  /** What goes with the turn that it begins. */
  readonly turn: InputTurn;
}

/** Stores one input for a run; the runner that holds the run is woken by the commit. */
export function sendToAgentExecution(
  { store }: Pick<ServiceDependencies, "store">,
  req: SendToAgentExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const run = await ownRun(tx, ctx, caller, req.agentExecutionId);
    requireInputKind(caller, req);
    requireNotStopped(run);
    if (!(await isRepeated(tx, req))) {
      await take(tx, caller, run, req);
      await recordSending(tx, caller, run, req);
    }
    return create(SendToAgentExecutionResponseSchema);
  });
}

/** @throws DomainError NOT_FOUND; PERMISSION_DENIED for a run that is not the caller's, nor on it */
async function ownRun(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  id: string,
): Promise<StoredAgentExecution> {
  const run = await findAgentExecution(tx.db, caller, id);
  if (!run) throw notFound("agent execution");
  const { creator } = run.execution.metadata ?? {};
  const runner = { id: await runnerOf(tx.db, caller, run), principal: Principal.RUNNER };
  requireOwnership(ctx, creator, runner);
  return run;
}

/** An agent run speaks through the runner that it is on, and so does the world around it. */
function requireInputKind({ role }: Caller, { input }: SendToAgentExecutionRequest): void {
  if (role === "runner" || (input.case !== "agentMessage" && input.case !== "wakeEvent")) return;
  const message =
    input.case === "agentMessage"
      ? "agent messages come from agent runs, by the runner that they are on: send userInput instead"
      : "wake events come from the service and from runners: send userInput instead";
  throw permissionDenied("send_to_agent_execution", message);
}

function requireNotStopped({ execution }: StoredAgentExecution): void {
  if (!hasStopped(execution) && !isWantedStopped(execution)) return;
  const message = hasStopped(execution)
    ? "the agent run has stopped: start another with StartAgent"
    : "the agent run is being stopped: start another with StartAgent";
  throw phaseUnsuitable("agent execution", Phase[phaseOfAgentExecution(execution)] ?? "", message);
}

/** Whether a message with this id is in the run already, queued or past. */
async function isRepeated(
  tx: WriteTransaction,
  { agentExecutionId, input }: SendToAgentExecutionRequest,
): Promise<boolean> {
  if (input.case !== "userInput" || input.value.id === "") return false;
  return (await findInput(tx.db, agentExecutionId, input.value.id)) !== undefined;
}

async function take(
  tx: WriteTransaction,
  caller: Caller,
  run: StoredAgentExecution,
  req: SendToAgentExecutionRequest,
): Promise<void> {
  const { input, expectedQueueRevision } = req;
  if (expectedQueueRevision !== undefined && expectedQueueRevision !== BigInt(run.queueRevision)) {
    throw queueChanged(run.queueRevision);
  }
  const sending = { tx, caller, run, turn: await turnOfInput(tx, caller, run, req) };
  switch (input.case) {
    case "userInput":
      return takeMessage(sending, input.value);
    case "agentMessage":
      return takeAgentMessage(sending, input.value);
    case "wakeEvent":
      return takeWakeEvent(sending, input.value);
    case "controlInput":
      return handleControlInput(tx, caller, run, input.value, sending.turn);
  }
}

/** Keeps who fed the run or rearranged its queue; what was said stays with the run. */
async function recordSending(
  tx: WriteTransaction,
  { organizationId }: Caller,
  { execution, queueRevision: before }: StoredAgentExecution,
  { input }: SendToAgentExecutionRequest,
): Promise<void> {
  const { id } = execution;
  const after = await findQueueRevision(tx.db, id);
  if (after === before) return;
  tx.record({
    organizationId,
    type: "agent_execution",
    id,
    kind: "updated",
    before: JSON.stringify({ queueRevision: before }),
    after: JSON.stringify({ queueRevision: after }),
    reason: input.case === "controlInput" ? (input.value.control.case ?? "") : (input.case ?? ""),
    facts: agentExecutionFacts(execution),
  });
}

async function takeMessage(sending: Sending, sent: UserInputBlock): Promise<void> {
  const { tx, caller, run } = sending;
  await requireQueueSpace(tx, run);
  const keepsNotes = caller.role === "runner";
  const message = acceptedMessage(sent, { id: tx.newId(), now: tx.now, keepsNotes });
  await endUserMessageInterests(tx, caller, run);
  await queue(sending, message.id, { case: "userInput", value: message });
}

/** @throws DomainError TEXT_DECEPTIVE; VALUE_UNUSABLE for a sender that does not speak through the calling runner */
async function takeAgentMessage(sending: Sending, message: AgentMessage): Promise<void> {
  const { tx, caller, run } = sending;
  await requireQueueSpace(tx, run);
  requireNoDeceptiveText(message.payload, "agentMessage.payload");
  const senderExecutionId = message.senderExecutionId.toLowerCase();
  const speaker = await findAgentExecution(tx.db, caller, senderExecutionId);
  if (!speaker || (await runnerOf(tx.db, caller, speaker)) !== caller.subject.id) {
    throw valueUnusable(
      "agentMessage.senderExecutionId",
      "agentMessage.senderExecutionId names no agent run on this runner: give that of the run that speaks",
    );
  }
  await queue(sending, tx.newId(), { case: "agentMessage", value: { ...message, senderExecutionId } });
}

/** @throws DomainError VALUE_UNUSABLE for an interest that the run does not have */
async function takeWakeEvent({ tx, caller, run, turn }: Sending, event: WakeEvent): Promise<void> {
  await requireQueueSpace(tx, run);
  const name = { executionId: run.execution.id, interestId: event.interestId };
  if (event.payload.case !== undefined) {
    const from = { sender: caller.subject, turn };
    if (await fireInterest(tx, caller, name, event.payload, from)) return;
  }
  throw valueUnusable(
    "wakeEvent.interestId",
    "wakeEvent.interestId names no interest that the agent run has registered: it may have fired already",
  );
}

function queue({ tx, caller, run, turn }: Sending, id: string, input: AgentInput["input"]): Promise<void> {
  const { subject: sender } = caller;
  const stored = create(AgentInputSchema, { id, sender, createdAt: timestampFromMs(tx.now), input });
  return queueInput(tx, run, stored, { turn });
}
