import { toJson } from "@bufbuild/protobuf";
import { AgentOutputView } from "#gen/service/v1/agent_pb.js";
import {
  type ListAgentExecutionsRequest,
  ListAgentExecutionsRequest_FilterSchema,
  type ListAgentInputsRequest,
  type ListAgentOutputBlocksRequest,
  type ListAgentsRequest,
} from "#gen/service/v1/agent_service_pb.js";
import type { Caller } from "../../../domain/identity/caller.ts";
import { mayReadEveryAgentExecution } from "../../../domain/policy/agent-policy.ts";
import { findAgentPage } from "../../../store/agent/agent.ts";
import {
  type AgentExecutionFilter,
  findAgentExecutionPage,
} from "../../../store/agent/agent-execution-list.ts";
import { findInputPage } from "../../../store/agent/agent-input-list.ts";
import { findOutputPage } from "../../../store/agent/agent-output-list.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { type ListDependencies, listPage } from "../../call/page.ts";
import { findSharingGroups } from "../../policy/shared-role.ts";
import { findConversation } from "./agent-conversation.ts";
import { getReadableAgentExecution, presentAgentExecution, presentAgentExecutions } from "./agent-reading.ts";

/**
 * Returns an agent execution.
 *
 * @throws DomainError NOT_FOUND, also when the caller may not read it
 */
export async function getAgentExecution({ store }: ServiceDependencies, caller: Caller, id: string) {
  const stored = await getReadableAgentExecution(store.reader, caller, id);
  return { agentExecution: await presentAgentExecution(store.reader, caller, stored) };
}

/** Returns one page of the agent executions that the caller may read, the newest first. */
export async function listAgentExecutions(
  deps: ServiceDependencies,
  caller: Caller,
  { filter, pagination }: ListAgentExecutionsRequest,
) {
  const db = deps.store.reader;
  const policies = await findPolicies(db, caller);
  const readsAll = mayReadEveryAgentExecution(policies, caller.role);
  const visible: AgentExecutionFilter = {
    ids: filter?.agentExecutionIds ?? [],
    // The contract bounds these three by length only, so their case was not normalized.
    agentIds: lowerCase(filter?.agentIds),
    environmentIds: lowerCase(filter?.environmentIds),
    creatorIds: lowerCase(filter?.creatorIds),
    projectIds: filter?.projectIds ?? [],
    sessionIds: filter?.sessionIds ?? [],
    phases: filter?.statusPhases ?? [],
    roles: filter?.roles ?? [],
    annotations: filter?.annotations ?? {},
    reader: readsAll
      ? undefined
      : { ...caller.subject, groupIds: await findSharingGroups(db, caller, policies) },
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListAgentExecutions",
    parts: [filter && toJson(ListAgentExecutionsRequest_FilterSchema, filter)],
    pagination,
    find: (lister, after, limit) => findAgentExecutionPage(lister, caller, visible, after, limit),
  });
  return { ...page, agentExecutions: await presentAgentExecutions(db, caller, rows) };
}

/** Returns one page of the agents that the caller's organization can see, by name ascending. */
export async function listAgents(
  deps: ServiceDependencies,
  caller: Caller,
  { pagination }: ListAgentsRequest,
) {
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListAgents",
    pagination,
    find: (db, after, limit) => findAgentPage(db, caller, after, limit),
  });
  return { ...page, agents: rows };
}

function lowerCase(ids: readonly string[] = []): string[] {
  return ids.map((id) => id.toLowerCase());
}

/** Returns one page of the inputs of an agent execution: the queue in delivery order, or all in order of arrival. */
export async function listAgentInputs(
  deps: ListDependencies,
  caller: Caller,
  { agentExecutionId: id, includePast, pagination }: ListAgentInputsRequest,
) {
  // Read before the inputs: a request with this revision is rejected if the queue has changed since.
  const { execution, queueRevision } = await getReadableAgentExecution(deps.store.reader, caller, id);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListAgentInputs",
    parts: [{ id, includePast }],
    pagination,
    find: (db, after, limit) => findInputPage(db, execution.id, { includePast, after: after?.key, limit }),
  });
  return { ...page, inputs: rows, queueRevision: BigInt(queueRevision) };
}

/** Returns one page of a conversation's output: every block, or the folded view. */
export async function listAgentOutputBlocks(
  deps: ListDependencies,
  caller: Caller,
  { agentExecutionId: id, view, pagination }: ListAgentOutputBlocksRequest,
) {
  // Read before the blocks: a caller that watches from here on misses nothing.
  const stored = await getReadableAgentExecution(deps.store.reader, caller, id);
  const parts = await findConversation(deps.store.reader, caller, stored);
  const folded = view === AgentOutputView.FOLDED;
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListAgentOutputBlocks",
    parts: [{ id, folded }],
    pagination,
    find: (db, after, limit) => findOutputPage(db, parts, { folded, after: after?.key, limit }),
  });
  return { ...page, blocks: rows, lastSequence: BigInt(stored.lastSequence) };
}
