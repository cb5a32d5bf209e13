import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AgentInput,
  AgentInputSchema,
  type AgentMessage,
  type UserInputBlock,
  type WakeEvent,
} from "#gen/service/v1/agent_pb.js";
import {
  type SendToAgentExecutionRequest,
  SendToAgentExecutionResponseSchema,
} from "#gen/service/v1/agent_service_pb.js";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { requireTakesInput } from "../../domain/agent/agent-execution.ts";
import {
  acceptedMessage,
  interestUnknown,
  requireInputKind,
  requireNoOwnSecrets,
  senderUnknown,
} from "../../domain/agent/agent-input.ts";
import { requireQueueRevision, requireQueueSpace } from "../../domain/agent/agent-queue.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireAgentSettingsAllowed, requireModeAllowed } from "../../domain/policy/agent-policy.ts";
import { isSameSubject, uniqueSubjects } from "../../domain/source/source-trust.ts";
import { requireNoDeceptiveText } from "../../domain/text/deceptive-text.ts";
import { findAgent } from "../../store/agent/agent.ts";
import {
  agentExecutionFacts,
  findAgentExecution,
  type StoredAgentExecution,
} from "../../store/agent/agent-execution.ts";
import { findInput, type InputTurn } from "../../store/agent/agent-input.ts";
import { findQueueRevision } from "../../store/agent/agent-progress.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import { findSourceSetters, replaceSourceSetters } from "../../store/identity/source-setter.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findSecretsOf } from "../../store/policy/secret.ts";
import { addSteerer } from "../../store/runner/work-sender.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { requireOwnershipOrRole } from "../policy/shared-role.ts";
import { handleControlInput } from "./agent-control-input.ts";
import { queueInput, readQueue } from "./agent-queue.ts";
import { endUserMessageInterests, fireInterest } from "./agent-wake.ts";
import { getReadableAgentExecution, runnerOf } from "./reading/agent-reading.ts";
import { acceptReview } from "./review/sent-review.ts";

/** The context in which an input is accepted. */
interface InputContext {
  readonly tx: WriteTransaction;
  readonly caller: Caller;
  readonly stored: StoredAgentExecution;
  /** Options and settings of the turn that the input begins. */
  readonly turn: InputTurn;
}

/** Stores one input for an agent execution. The commit wakes the runner that holds its lease. */
export function sendToAgentExecution(
  { store }: Pick<ServiceDependencies, "store">,
  req: SendToAgentExecutionRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const stored = await requireMaySend(tx, ctx, caller, req.agentExecutionId);
    requireInputKind(caller, req);
    requireTakesInput(stored.execution);
    if (!(await isRepeated(tx, stored, req))) {
      await acceptInput(tx, caller, stored, req);
      await recordInput(tx, caller, stored, req);
    }
    return create(SendToAgentExecutionResponseSchema);
  });
}

/**
 * Requires that the caller may send to an agent execution.
 *
 * @throws DomainError NOT_FOUND, also for one that the caller may not read; PERMISSION_DENIED when the caller is neither
 *   its creator nor its runner, nor has the role by a group
 */
async function requireMaySend(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  id: string,
): Promise<StoredAgentExecution> {
  const stored = await getReadableAgentExecution(tx.db, caller, id);
  const { creator } = stored.execution.metadata ?? {};
  const runner = { id: await runnerOf(tx.db, caller, stored), principal: Principal.RUNNER };
  const needed = { type: "agent_execution", id: stored.execution.id, role: ResourceRole.USE } as const;
  if (await requireOwnershipOrRole(tx.db, ctx, caller, needed, creator, runner))
    await keepCredentials(tx, caller, stored);
  return stored;
}

/** Returns whether the agent execution already has a message with this id, queued or delivered. */
async function isRepeated(
  tx: WriteTransaction,
  { execution }: StoredAgentExecution,
  { input }: SendToAgentExecutionRequest,
): Promise<boolean> {
  if (input.case !== "userInput" || input.value.id === "") return false;
  return (await findInput(tx.db, execution.id, input.value.id)) !== undefined;
}

async function acceptInput(
  tx: WriteTransaction,
  caller: Caller,
  stored: StoredAgentExecution,
  req: SendToAgentExecutionRequest,
): Promise<void> {
  const { input, expectedQueueRevision } = req;
  requireQueueRevision(expectedQueueRevision, stored.queueRevision);
  const context = { tx, caller, stored, turn: await createInputTurn(tx, caller, stored, req) };
  switch (input.case) {
    case "userInput":
      return acceptUserInput(context, input.value);
    case "agentMessage":
      return acceptAgentMessage(context, input.value);
    case "wakeEvent":
      return acceptWakeEvent(context, input.value);
    case "controlInput":
      return handleControlInput(tx, caller, stored, input.value, context.turn);
  }
}

/** Records in the audit log who sent an input or changed the queue. The content stays in the agent execution. */
async function recordInput(
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

/**
 * Queues the first message of an agent execution that this transaction inserts.
 * @throws DomainError TEXT_DECEPTIVE; VALUE_UNUSABLE for an image that is not of its type
 */
export function queueFirstMessage(
  tx: WriteTransaction,
  caller: Caller,
  stored: StoredAgentExecution,
  sent: UserInputBlock,
): Promise<void> {
  return acceptUserInput({ tx, caller, stored, turn: {} }, sent);
}

async function acceptUserInput(context: InputContext, sent: UserInputBlock): Promise<void> {
  const { tx, caller, stored } = context;
  requireQueueSpace(await readQueue(tx, stored));
  const keepsMetadata = caller.role === "runner";
  const accepted = await acceptReview(tx, caller, stored, sent);
  const message = acceptedMessage(accepted, { id: tx.newId(), now: tx.now, keepsMetadata });
  await endUserMessageInterests(tx, caller, stored);
  await enqueue(context, message.id, { case: "userInput", value: message });
}

/** Queues an agent's message. @throws DomainError TEXT_DECEPTIVE; VALUE_UNUSABLE for a sender on another runner */
async function acceptAgentMessage(context: InputContext, message: AgentMessage): Promise<void> {
  const { tx, caller, stored } = context;
  requireQueueSpace(await readQueue(tx, stored));
  requireNoDeceptiveText(message.payload, "agentMessage.payload");
  const senderExecutionId = message.senderExecutionId.toLowerCase();
  const senderExecution = await findAgentExecution(tx.db, caller, senderExecutionId);
  const runnerId = senderExecution && (await runnerOf(tx.db, caller, senderExecution));
  if (runnerId !== caller.subject.id) throw senderUnknown();
  await enqueue(context, tx.newId(), { case: "agentMessage", value: { ...message, senderExecutionId } });
}

/** Queues a wake event. @throws DomainError VALUE_UNUSABLE for an interest that the agent execution does not have */
async function acceptWakeEvent({ tx, caller, stored, turn }: InputContext, event: WakeEvent): Promise<void> {
  requireQueueSpace(await readQueue(tx, stored));
  const name = { executionId: stored.execution.id, interestId: event.interestId };
  if (event.payload.case !== undefined) {
    const from = { sender: caller.subject, turn };
    if (await fireInterest(tx, caller, name, event.payload, from)) return;
  }
  throw interestUnknown();
}

function enqueue(
  { tx, caller, stored, turn }: InputContext,
  id: string,
  input: AgentInput["input"],
): Promise<void> {
  const { subject: sender } = caller;
  const agentInput = create(AgentInputSchema, { id, sender, createdAt: timestampFromMs(tx.now), input });
  return queueInput(tx, stored, agentInput, { turn });
}

/**
 * Returns the options of the turn that an input begins and, for a message of a user
 * to an agent that accepts settings, the settings of that turn.
 *
 * @throws PolicyDenied
 */
async function createInputTurn(
  tx: WriteTransaction,
  scope: Scope,
  { execution }: StoredAgentExecution,
  { input, turnOptions, extAgentSettings: asked }: SendToAgentExecutionRequest,
): Promise<InputTurn> {
  const settings = input.case === "userInput" ? asked : undefined;
  if (!turnOptions && !settings) return {};
  const policies = await findPolicies(tx.db, scope);
  for (const mode of turnOptions?.modes ?? []) requireModeAllowed(policies, mode);
  if (settings) requireAgentSettingsAllowed(policies, settings);
  const agent = settings && (await findAgent(tx.db, scope, execution.spec?.agentId ?? ""));
  return {
    ...(turnOptions && { turnOptions }),
    ...(settings && agent?.agent.takesSettings && { extAgentSettings: settings }),
  };
}

/**
 * Protects the credentials and secrets of an agent execution's creator from a caller who sends to it through a
 * group's role. From now on the caller counts as a setter of the environment's source, so the creator's host
 * credentials are withheld, unless the caller was already a setter.
 *
 * @throws DomainError PERMISSION_DENIED if the work may have personal secrets of the creator
 */
async function keepCredentials(
  tx: WriteTransaction,
  caller: Caller,
  { execution, environmentId }: StoredAgentExecution,
): Promise<void> {
  const environment = await findEnvironment(tx.db, caller, environmentId);
  if (!environment) return;
  const creators = uniqueSubjects(
    [execution.metadata?.creator, environment.metadata?.creator].filter(
      (subject): subject is Subject => subject !== undefined && !isSameSubject(subject, caller.subject),
    ),
  );
  const ids = creators.map(({ id }) => id);
  if (ids.length > 0) requireNoOwnSecrets(await findSecretsOf(tx.db, caller, ids));
  // Stored with the environment, which may outlive the run and its inputs.
  await addSteerer(tx, caller, environment.id, caller.subject);
  const setters = await findSourceSetters(tx.db, caller, "environment", environment);
  if (setters.some((setter) => isSameSubject(setter, caller.subject))) return;
  const { before, after } = await replaceSourceSetters(tx, caller, "environment", environment, [
    ...setters,
    caller.subject,
  ]);
  tx.record({
    organizationId: caller.organizationId,
    type: "environment",
    id: environment.id,
    kind: "updated",
    before: JSON.stringify({ sourceSetBy: before }),
    after: JSON.stringify({ sourceSetBy: after }),
    facts: { creatorId: environment.metadata?.creator?.id ?? null },
  });
}
