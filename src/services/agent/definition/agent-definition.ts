import { create, equals } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { type AgentDefinition, AgentDefinitionSchema, AgentSchema } from "#gen/service/v1/agent_pb.js";
import type {
  CreateAgentRequest,
  DeleteAgentRequest,
  UpdateAgentRequest,
} from "#gen/service/v1/agent_service_pb.js";
import { newAgent } from "../../../domain/agent/agent.ts";
import {
  programOf,
  redefinedAgent,
  requireApiAgentsKnown,
  requireDefined,
  requireNameFree,
  requireRoomForAgent,
} from "../../../domain/agent/definition/agent-definition.ts";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import {
  findAgent,
  findVisibleAgents,
  insertOwnAgent,
  type RegisteredAgent,
  removeOwnAgent,
  updateOwnAgent,
} from "../../../store/agent/agent.ts";
import { API_AGENTS_LEVEL, mayStore } from "../../../store/feature-level.ts";
import type { Reader, Scope, WriteTransaction } from "../../../store/store.ts";
import { type CallerWriteOptions, writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { requireRunnerForApiAgents } from "./api-agent-runner.ts";

type Dependencies = Pick<ServiceDependencies, "store">;

/** Keeps the operator from registering an agent of the same name for all organizations at the same time. */
const NAMES_AGENT: CallerWriteOptions = { alsoLocks: [null] };

/** Defines an agent of the caller's organization. */
export function createAgent({ store }: Dependencies, req: CreateAgentRequest, ctx: HandlerContext) {
  const define = async (tx: WriteTransaction, caller: Caller) => {
    requireApiAgentsKnown(mayStore(tx, API_AGENTS_LEVEL));
    const definition: AgentDefinition = req.definition ?? create(AgentDefinitionSchema);
    const program = programOf(definition);
    await requireRunnerForApiAgents(tx.db, caller);
    const visible = await findVisibleAgents(tx.db, caller);
    requireRoomForAgent(visible);
    requireNameFree(req.name, "", visible);
    const agent = { ...newAgent({ ...req, id: tx.newId() }), definition };
    await insertOwnAgent(tx, caller, { agent, ...program, mcpServers: [] });
    return { agent: { ...agent, own: true } };
  };
  return writeAsCaller(store, ctx, define, NAMES_AGENT);
}

/** Changes an agent that was defined through the API. */
export function updateAgent({ store }: Dependencies, req: UpdateAgentRequest, ctx: HandlerContext) {
  const change = async (tx: WriteTransaction, caller: Caller) => {
    const before = await getDefinedAgent(tx.db, caller, req.agentId);
    const after = redefinedAgent(before.agent, req);
    if (equals(AgentSchema, before.agent, after)) return { agent: before.agent };
    const program = programOf(after.definition ?? create(AgentDefinitionSchema));
    await requireRunnerForApiAgents(tx.db, caller);
    requireNameFree(after.name, after.id, await findVisibleAgents(tx.db, caller));
    await updateOwnAgent(tx, caller, before, after, program);
    return { agent: after };
  };
  return writeAsCaller(store, ctx, change, NAMES_AGENT);
}

/** Deletes an agent that was defined through the API. Agent executions that have not begun will fail. */
export function deleteAgent({ store }: Dependencies, { agentId }: DeleteAgentRequest, ctx: HandlerContext) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    await removeOwnAgent(tx, caller, await getDefinedAgent(tx.db, caller, agentId));
    return {};
  });
}

/**
 * Returns an agent that was defined through the API. @throws DomainError NOT_FOUND; PHASE_UNSUITABLE for other agents
 */
async function getDefinedAgent(db: Reader, scope: Scope, id: string): Promise<RegisteredAgent> {
  const found = await findAgent(db, scope, id);
  if (!found) throw notFound("agent");
  requireDefined(found.agent);
  return found;
}
