import { toJson } from "@bufbuild/protobuf";
import {
  type ListAgentExecutionsRequest,
  ListAgentExecutionsRequest_FilterSchema,
  type ListAgentsRequest,
} from "#gen/service/v1/agent_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { readsEveryAgentExecution } from "../../domain/policy/agent-policy.ts";
import { findAgentPage } from "../../store/agent/agent.ts";
import { type AgentExecutionFilter, findAgentExecutionPage } from "../../store/agent/agent-execution-list.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { getReadableAgentExecution, presentAgentExecution, presentAgentExecutions } from "./agent-reading.ts";

export async function getAgentExecution({ store }: ServiceDependencies, caller: Caller, id: string) {
  const stored = await getReadableAgentExecution(store.reader, caller, id);
  return { agentExecution: await presentAgentExecution(store.reader, caller, stored) };
}

/** One page of the runs that the caller may read, the newest first. */
export async function listAgentExecutions(
  deps: ServiceDependencies,
  caller: Caller,
  { filter, pagination }: ListAgentExecutionsRequest,
) {
  const db = deps.store.reader;
  const readsAll = readsEveryAgentExecution(await findPolicies(db, caller), caller.role);
  const visible: AgentExecutionFilter = {
    ids: filter?.agentExecutionIds ?? [],
    // The contract bounds these three by length alone, so that the edge leaves their letters as they come.
    agentIds: lowerCase(filter?.agentIds),
    environmentIds: lowerCase(filter?.environmentIds),
    creatorIds: lowerCase(filter?.creatorIds),
    projectIds: filter?.projectIds ?? [],
    sessionIds: filter?.sessionIds ?? [],
    phases: filter?.statusPhases ?? [],
    roles: filter?.roles ?? [],
    annotations: filter?.annotations ?? {},
    reader: readsAll ? undefined : caller.subject,
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListAgentExecutions",
    parts: [filter && toJson(ListAgentExecutionsRequest_FilterSchema, filter)],
    pagination,
    find: (lister, after, limit) => findAgentExecutionPage(lister, caller, visible, after, limit),
  });
  return { ...page, agentExecutions: await presentAgentExecutions(db, caller, rows) };
}

/** One page of the agents that the caller's organization sees, by name ascending. */
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
