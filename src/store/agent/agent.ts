import type { AgentForm } from "#gen/runner/v1/work_pb.js";
import { type Agent, AgentSchema } from "#gen/service/v1/agent_pb.js";
import type { VisibleAgent } from "../../domain/agent/definition/agent-definition.ts";
import type { McpServer } from "../../domain/agent/mcp/mcp-server.ts";
import type { ListedRow, PagePosition } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstOfFew } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { AgentTable } from "./agent-schema.ts";

/** An agent with the values that only runners get. */
export interface RegisteredAgent {
  /** With `own` set. */
  readonly agent: Agent;
  /** Id of the owning organization; null for an agent that every organization sees. */
  readonly organizationId: string | null;
  readonly form: AgentForm;
  /** Program and arguments; at least one word. */
  readonly command: readonly string[];
  /** The servers of the Model Context Protocol that it may use. */
  readonly mcpServers: readonly McpServer[];
}

function agentOfRow({ organization_id, form, command, mcp_servers, body }: AgentTable): RegisteredAgent {
  return {
    agent: ownedAgent({ organization_id, body }),
    organizationId: organization_id,
    form,
    command: JSON.parse(command),
    mcpServers: JSON.parse(mcp_servers),
  };
}

function ownedAgent({ organization_id, body }: Pick<AgentTable, "organization_id" | "body">): Agent {
  const agent = fromBody(AgentSchema, body);
  agent.own = organization_id !== null;
  return agent;
}

const selectAgent = prepared<{ id: string; organizationId: string }, AgentTable>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("agent")
      .selectAll()
      .where("id", "=", id)
      .where((eb) => eb.or([eb("organization_id", "is", null), eb("organization_id", "=", organizationId)])),
);

/** Returns an agent that the organization sees. */
export async function findAgent(db: Reader, scope: Scope, id: string): Promise<RegisteredAgent | undefined> {
  const [row] = await selectAgent(db, { id, organizationId: scope.organizationId });
  return row && agentOfRow(row);
}

const selectDefaults = prepared<{ organizationId: string }, AgentTable>((db, { organizationId }) =>
  db
    .selectFrom("agent")
    .selectAll()
    .where((eb) => eb("is_default", "=", eb.lit(1)))
    .where((eb) => eb.or([eb("organization_id", "is", null), eb("organization_id", "=", organizationId)])),
);

/**
 * Returns the agent that is used when a request names none: the organization's own default, or else the default of the
 * installation.
 */
export async function findDefaultAgent(db: Reader, scope: Scope): Promise<RegisteredAgent | undefined> {
  const found = (await selectDefaults(db, { organizationId: scope.organizationId })).map(agentOfRow);
  return found.find(({ agent }) => agent.own) ?? found[0];
}

/**
 * Returns the agents that an organization sees: at most 100 of its own, and those that the operator registered. Their
 * programs are omitted, since each may be 1 MiB long and other writes wait for the one that reads this.
 */
export async function findVisibleAgents(db: Reader, { organizationId }: Scope): Promise<VisibleAgent[]> {
  const rows = await builderOf(db)
    .selectFrom("agent")
    .select(["id", "name", "organization_id"])
    .where((eb) => eb.or([eb("organization_id", "is", null), eb("organization_id", "=", organizationId)]))
    .execute();
  return rows.map(({ id, name, organization_id }) => ({ id, name, own: organization_id !== null }));
}

/** Returns up to `limit` agents that the organization sees after `after`, by name ascending. */
export async function findAgentPage(
  db: Reader,
  scope: Scope,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<Agent>[]> {
  const all = builderOf(db)
    .selectFrom("agent")
    .select(["id", "name", "organization_id", ...bodyColumns("agent")])
    .where(checkDeadline())
    .where((eb) =>
      eb.or([eb("organization_id", "is", null), eb("organization_id", "=", scope.organizationId)]),
    );
  // No two agents that an organization sees have the same name.
  const order = { columns: ["agent.name"], direction: "asc", after: after && [after.text ?? ""] } as const;
  const rows = await firstOfFew(all, order, limit);
  return listedRows(db, "agent", rows, ({ id, name }) => ({ key: 0, text: name, id }), ownedAgent);
}

/**
 * Returns the agents of every organization, and those of all. For the operator, so without a scope.
 */
export async function findAgents(db: Reader): Promise<RegisteredAgent[]> {
  const rows = await builderOf(db)
    .selectFrom("agent")
    .selectAll()
    // Agents of the installation first, also on an engine that sorts nulls last.
    .orderBy("organization_id", (order) => order.asc().nullsFirst())
    .orderBy("name")
    .execute();
  return rows.map(agentOfRow);
}

export async function insertAgent(tx: WriteTransaction, registered: RegisteredAgent): Promise<void> {
  const { agent, organizationId, form, command, mcpServers } = registered;
  const body = bodyOf(agent);
  await builderOf(tx.db)
    .insertInto("agent")
    .values({
      id: agent.id,
      organization_id: organizationId,
      name: agent.name,
      is_default: agent.default ? 1 : 0,
      form,
      command: JSON.stringify(command),
      mcp_servers: JSON.stringify(mcpServers),
      body,
    })
    .execute();
  tx.record({ organizationId, type: "agent", id: agent.id, kind: "created", after: body });
}

/** Changes the description of an agent; its program stays. */
export async function updateRegisteredAgent(
  tx: WriteTransaction,
  { agent: before, organizationId }: RegisteredAgent,
  after: Agent,
): Promise<void> {
  const body = bodyOf(after);
  await builderOf(tx.db)
    .updateTable("agent")
    .set({ name: after.name, is_default: after.default ? 1 : 0, body })
    .where("id", "=", after.id)
    .execute();
  const change = { organizationId, type: "agent", id: after.id, kind: "updated" } as const;
  tx.record({ ...change, before: bodyOf(before), after: body });
}

/** Inserts an agent that belongs to one organization. */
export function insertOwnAgent(
  tx: WriteTransaction,
  { organizationId }: Scope,
  registered: Omit<RegisteredAgent, "organizationId">,
): Promise<void> {
  return insertAgent(tx, { ...registered, organizationId });
}

/** Changes an agent that belongs to one organization, and its program. */
export async function updateOwnAgent(
  tx: WriteTransaction,
  { organizationId }: Scope,
  { agent: before }: RegisteredAgent,
  after: Agent,
  { form, command }: Pick<RegisteredAgent, "form" | "command">,
): Promise<void> {
  const body = bodyOf(after);
  await builderOf(tx.db)
    .updateTable("agent")
    .set({ name: after.name, form, command: JSON.stringify(command), body })
    .where("id", "=", after.id)
    .where("organization_id", "=", organizationId)
    .execute();
  const change = { organizationId, type: "agent", id: after.id, kind: "updated" } as const;
  tx.record({ ...change, before: bodyOf(before), after: body });
}

/** Removes an agent that belongs to one organization; its executions still name it. */
export function removeOwnAgent(
  tx: WriteTransaction,
  { organizationId }: Scope,
  registered: RegisteredAgent,
): Promise<void> {
  return removeAgent(tx, { ...registered, organizationId });
}

/** Removes an agent permanently; its executions still name it. */
export async function removeAgent(
  tx: WriteTransaction,
  { agent, organizationId }: RegisteredAgent,
): Promise<void> {
  await builderOf(tx.db).deleteFrom("agent").where("id", "=", agent.id).execute();
  tx.record({ organizationId, type: "agent", id: agent.id, kind: "deleted", before: bodyOf(agent) });
}

/** Returns the stored body, without `own`, which follows from the column. */
function bodyOf(agent: Agent): string {
  return toBody(AgentSchema, { ...agent, own: false });
}
