import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { type AgentOwner, commandWords, newAgent, requireUniqueName } from "../../domain/agent/agent.ts";
import { mcpServers, requireMcpForm } from "../../domain/agent/mcp/mcp-server.ts";
import { notFound } from "../../domain/error.ts";
import {
  findAgents,
  insertAgent,
  type RegisteredAgent,
  removeAgent,
  updateRegisteredAgent,
} from "../../store/agent/agent.ts";
import { OPERATOR, type Store, type WriteOptions, type WriteTransaction } from "../../store/store.ts";

/** The registration of an agent by the operator. */
export interface AgentRegistration {
  readonly organizationId: AgentOwner;
  readonly name: string;
  readonly description: string;
  /** Command line in the syntax of {@link commandWords}. */
  readonly command: string;
  readonly form: AgentForm;
  /** Servers of the Model Context Protocol in the syntax of {@link mcpServers}; absent for none. */
  readonly mcpServers?: readonly string[];
  readonly takesSettings: boolean;
  /** True when it becomes the default of its owner. */
  readonly isDefault: boolean;
}

/**
 * Registers an agent as the operator.
 *
 * @returns its id
 * @throws DomainError VALUE_UNUSABLE, also for a name that would be ambiguous in an organization
 */
export function registerAgent(store: Store, registration: AgentRegistration): Promise<string> {
  const { organizationId, name, form, isDefault } = registration;
  const add = async (tx: WriteTransaction) => {
    const agent = newAgent({ ...registration, id: tx.newId() });
    const command = commandWords(registration.command);
    const servers = mcpServers(registration.mcpServers ?? []);
    requireMcpForm(servers, form === AgentForm.ACP);
    requireUniqueName(name, organizationId, await findAgents(tx.db));
    const registered = { agent, organizationId, form, command, mcpServers: servers };
    await insertAgent(tx, registered);
    if (isDefault) await setDefault(tx, registered);
    return agent.id;
  };
  return store.write(OPERATOR, "chartroom agent add", add, registryLocks(organizationId));
}

/**
 * Makes an agent the default of its owner and replaces the previous default.
 *
 * @throws DomainError NOT_FOUND
 */
export function makeAgentDefault(store: Store, organizationId: AgentOwner, named: string): Promise<void> {
  const change = async (tx: WriteTransaction) =>
    setDefault(tx, await requireAgent(tx, organizationId, named));
  return store.write(OPERATOR, "chartroom agent default", change, registryLocks(organizationId));
}

/**
 * Unregisters an agent. Agent executions that have begun continue; others will fail.
 *
 * @throws DomainError NOT_FOUND
 */
export function unregisterAgent(store: Store, organizationId: AgentOwner, named: string): Promise<void> {
  const remove = async (tx: WriteTransaction) =>
    removeAgent(tx, await requireAgent(tx, organizationId, named));
  return store.write(OPERATOR, "chartroom agent remove", remove, registryLocks(organizationId));
}

/**
 * Returns the locks of a change of the registry. The one that belongs to no organization keeps names unique: every
 * write that gives an agent its name holds it.
 */
const registryLocks = (organizationId: AgentOwner): WriteOptions => ({
  locks: organizationId === null ? [null] : [organizationId, null],
});

async function setDefault(tx: WriteTransaction, registered: RegisteredAgent): Promise<void> {
  const { agent, organizationId } = registered;
  if (agent.default) return;
  for (const each of await findAgents(tx.db)) {
    if (each.organizationId !== organizationId || !each.agent.default) continue;
    await updateRegisteredAgent(tx, each, { ...each.agent, default: false });
  }
  await updateRegisteredAgent(tx, registered, { ...agent, default: true });
}

/** Returns the owner's agent with the given id or name. */
async function requireAgent(
  tx: WriteTransaction,
  organizationId: AgentOwner,
  named: string,
): Promise<RegisteredAgent> {
  const found = (await findAgents(tx.db)).find(
    ({ agent, organizationId: owner }) =>
      owner === organizationId && (agent.id === named.toLowerCase() || agent.name === named),
  );
  if (!found) throw notFound("agent");
  return found;
}
