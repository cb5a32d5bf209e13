import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { usePerson } from "../api/person.tsx";
import { runState, runTitle } from "../pages/agents/run-state.ts";
import { executionState } from "../pages/workflows/workflow-state.ts";
import type { IconName } from "../parts/Icon.tsx";

/** Something to go to, or to do on the page. */
export interface Target {
  readonly key: string;
  readonly label: string;
  /** Its kind, and what distinguishes it from others of the same name. */
  readonly hint: string;
  readonly icon: IconName;
  /** The page's address in the console. */
  readonly href?: string;
  /** Does it, when there is no address to go to. */
  readonly run?: () => void;
}

/** Maximum entries of a kind in the results; typing more of the name finds the others. */
const OF_A_KIND = 5;

/** Newest runs that are searched: the contract has no search for runs, so the page filters them. */
const NEWEST_RUNS = 100;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Searches projects, workflows, agent runs, executions and members by name and id, like their lists do. An empty
 * search finds nothing and calls nothing.
 */
export function useFound(search: string) {
  const organizationId = usePerson().user?.organizationId ?? "";
  const enabled = search !== "" && organizationId !== "";
  const pagination = { pageSize: OF_A_KIND };
  const options = { enabled, placeholderData: keepPreviousData, refetchInterval: false, retry: 1 } as const;
  const filter = { search };
  const projects = useQuery(ProjectService.method.listProjects, { filter, pagination }, options);
  const workflows = useQuery(WorkflowService.method.listWorkflows, { filter, pagination }, options);
  const isId = UUID.test(search);
  const runs = useQuery(
    AgentService.method.listAgentExecutions,
    isId
      ? { filter: { agentExecutionIds: [search.toLowerCase()] }, pagination }
      : { pagination: { pageSize: NEWEST_RUNS } },
    options,
  );
  const executions = useQuery(WorkflowService.method.listWorkflowExecutions, { filter, pagination }, options);
  const workflowIds = [
    ...new Set(executions.data?.workflowExecutions.map(({ metadata }) => metadata?.workflowId ?? "")),
  ].toSorted();
  const names = useQuery(
    WorkflowService.method.listWorkflows,
    { filter: { workflowIds }, pagination },
    { ...options, enabled: enabled && workflowIds.length > 0, placeholderData: undefined },
  );
  const members = useQuery(
    OrganizationService.method.listMembers,
    { organizationId, filter, pagination },
    options,
  );
  const targets: Target[] = [];
  const add = (kind: string, id: string, label: string, more: string, icon: IconName, href: string) =>
    targets.push({ key: id, label, hint: more === "" ? kind : `${kind} · ${more}`, icon, href });
  for (const { id, metadata } of projects.data?.projects ?? [])
    add("Project", id, metadata?.name ?? id, "", "projects", `/projects/${id}`);
  for (const { id, metadata } of workflows.data?.workflows ?? [])
    add("Workflow", id, metadata?.name ?? id, "", "workflows", `/workflows/${id}`);
  const folded = search.toLowerCase();
  const named = (runs.data?.agentExecutions ?? []).filter(
    (run) => isId || runTitle(run).toLowerCase().includes(folded) || run.id.includes(folded),
  );
  for (const run of named.slice(0, OF_A_KIND))
    add("Run", run.id, runTitle(run), runState(run)[1], "agents", `/agents/${run.id}`);
  const nameOf = new Map(names.data?.workflows.map(({ id, metadata }) => [id, metadata?.name]));
  for (const execution of executions.data?.workflowExecutions ?? []) {
    const { id, metadata } = execution;
    const name = nameOf.get(metadata?.workflowId ?? "") ?? `Execution ${id.slice(-8)}`;
    const more = `${executionState(execution)[1]} · ${id.slice(-8)}`;
    add("Execution", id, name, more, "execute", `/executions/${id}`);
  }
  for (const { userId, fullName, email } of members.data?.members ?? [])
    add("Member", userId, fullName, email, "account", `/organization?q=${encodeURIComponent(email)}`);
  const readings = [projects, workflows, runs, executions, names, members];
  return {
    targets: enabled ? targets : [],
    /** True while a result belongs to an earlier search or has not arrived. */
    isSearching:
      enabled && readings.some(({ isLoading, isPlaceholderData }) => isLoading || isPlaceholderData),
    /** Why one of the kinds could not be searched. */
    error: enabled ? readings.find(({ error }) => error)?.error : undefined,
  };
}
