import type { Kysely } from "kysely";
import { agentMissing, notFound } from "../../domain/error.ts";
import { findAgent, findDefaultAgent, type RegisteredAgent } from "../../store/agent/agent.ts";
import type { Schema } from "../../store/schema.ts";
import type { Scope } from "../../store/store.ts";

/**
 * The agent that a run is of.
 *
 * @param agentId empty for the default: the organization's own, else that of all organizations
 * @throws DomainError NOT_FOUND for one that the organization does not see; AGENT_MISSING without a default
 */
export async function agentNamed(
  db: Kysely<Schema>,
  scope: Scope,
  agentId: string,
): Promise<RegisteredAgent> {
  if (agentId !== "") {
    const named = await findAgent(db, scope, agentId);
    if (!named) throw notFound("agent");
    return named;
  }
  const usual = await findDefaultAgent(db, scope);
  if (!usual) throw agentMissing();
  return usual;
}
