import { agentMissing, notFound } from "../../domain/error.ts";
import { findAgent, findDefaultAgent, type RegisteredAgent } from "../../store/agent/agent.ts";
import type { Reader, Scope } from "../../store/store.ts";

/**
 * Returns the agent with an id, or the default agent.
 *
 * @param agentId empty for the default: the organization's own, or else that of all organizations
 * @throws DomainError NOT_FOUND for an agent that the organization cannot see; AGENT_MISSING without a default
 */
export async function resolveAgent(db: Reader, scope: Scope, agentId: string): Promise<RegisteredAgent> {
  if (agentId !== "") {
    const named = await findAgent(db, scope, agentId);
    if (!named) throw notFound("agent");
    return named;
  }
  const defaultAgent = await findDefaultAgent(db, scope);
  if (!defaultAgent) throw agentMissing();
  return defaultAgent;
}
