import type { ExtAgentSettings } from "#gen/service/v1/agent_pb.js";
import type { StartAgentRequest } from "#gen/service/v1/agent_service_pb.js";
import {
  agentUnregistered,
  environmentGone,
  requireContinuable,
  requireNoPlacement,
  requireNotContinued,
  requireNotOfStep,
  requireSameAgent,
} from "../../domain/agent/conversation/agent-continuation.ts";
import type { ForkPoint } from "../../domain/agent/conversation/agent-fork.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireOwnershipFor } from "../../domain/identity/ownership.ts";
import { RunOrigin as Origin } from "../../domain/policy/approval-policy.ts";
import { findAgent, findDefaultAgent } from "../../store/agent/agent.ts";
import { type EarlierExecution, findContinuation } from "../../store/agent/agent-conversation.ts";
import type { StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import { findEnvironment } from "../../store/environment/environment.ts";
import type { Reader, WriteTransaction } from "../../store/store.ts";
import type { EarlierConversation } from "./agent-execution.ts";
import { getReadableAgentExecution } from "./reading/agent-reading.ts";
import { findOrigins, originBits, originOf } from "./run-origin.ts";

/** Values that a run takes from the earlier run that it continues, in addition to those of the request. */
export interface Continuation
  extends Pick<StartAgentRequest, "agentId" | "name" | "runnerId" | "sessionId" | "mode"> {
  readonly extAgentSettings: ExtAgentSettings | undefined;
  readonly earlier: EarlierConversation;
  readonly stored: StoredAgentExecution;
  /** The point at which its agent forks the conversation; undefined to continue it. */
  readonly fork?: ForkPoint;
}

/**
 * Returns the start values of a run that continues the run that a request names.
 * @throws DomainError NOT_FOUND, also when the caller may not read that run; PERMISSION_DENIED when the caller may
 * not send to it; VALUE_UNUSABLE when the request names another agent or its own placement; PHASE_UNSUITABLE for a
 * run that cannot be resumed
 */
export async function resolveContinuation(
  tx: WriteTransaction,
  caller: Caller,
  req: StartAgentRequest,
): Promise<Continuation> {
  const stored = await getReadableAgentExecution(tx.db, caller, req.resumeFrom);
  const { execution, environmentId, lastSequence } = stored;
  const { creator } = execution.metadata ?? {};
  requireNoPlacement(req);
  requireOwnershipFor("service.v1.AgentService/SendToAgentExecution", caller, creator);
  requireContinuable(execution);
  requireSameAgent(execution, req.agentId);
  requireNotContinued(execution, await findContinuation(tx.db, caller, environmentId, execution.id));
  return continuationOf(tx, caller, stored, req, { id: execution.id, sequence: lastSequence, isFork: false });
}

/**
 * Returns the start values of a run that continues the conversation of another, in its environment.
 * @param asked values that replace those of the other run
 * @param from the block after which it continues, and whether it forks the conversation there
 * @throws DomainError PHASE_UNSUITABLE for a run of a step, and one whose environment or agent was removed
 */
export async function continuationOf(
  tx: WriteTransaction,
  caller: Caller,
  stored: StoredAgentExecution,
  asked: Pick<StartAgentRequest, "name" | "mode" | "extAgentSettings">,
  from: Omit<EarlierExecution, "origins">,
): Promise<Continuation> {
  const { execution, environmentId } = stored;
  const origins = await findOrigins(tx.db, caller, stored);
  requireNotOfStep(execution, origins.includes(Origin.WORKFLOW_STEP));
  if (!(await findEnvironment(tx.db, caller, environmentId))) throw environmentGone();
  return {
    stored,
    agentId: await agentIdOf(tx.db, caller, stored),
    name: asked.name || (execution.metadata?.name ?? ""),
    runnerId: stored.runnerId ?? "",
    sessionId: execution.metadata?.sessionId ?? "",
    mode: asked.mode || stored.progress.mode,
    extAgentSettings: asked.extAgentSettings ?? execution.spec?.extAgentSettings,
    earlier: {
      ...from,
      origins: originBits([...origins, originOf(caller.subject.principal)]),
      conversationId: conversationIdOf(execution),
    } satisfies EarlierExecution & EarlierConversation,
  };
}

/** Returns the id of the first execution of the conversation that an execution belongs to. */
export function conversationIdOf({ id, metadata }: StoredAgentExecution["execution"]): string {
  return metadata?.conversationId || id;
}

/** Returns the id of the agent; empty for the default agent, which needs no permission from a policy. */
async function agentIdOf(db: Reader, caller: Caller, { execution }: StoredAgentExecution): Promise<string> {
  const agentId = execution.spec?.agentId ?? "";
  if (!(await findAgent(db, caller, agentId))) throw agentUnregistered();
  return (await findDefaultAgent(db, caller))?.agent.id === agentId ? "" : agentId;
}
