import { useQuery } from "@tanstack/react-query";
import { callJson } from "../../api/json.ts";

/** Lists, by service; an entry in one of them means that somebody has begun. */
const LISTS = {
  ProjectService: ["ListProjects", "projects"],
  WorkflowService: ["ListWorkflows", "workflows"],
  AgentService: ["ListAgentExecutions", "agentExecutions"],
} as const;

type Service = keyof typeof LISTS;

/** Returns whether a list is empty; refetched when an event is about its service. */
function useHasNone(service: Service): boolean {
  const [operation, rows] = LISTS[service];
  const { data } = useQuery({
    queryKey: ["connect-query", { serviceName: `service.v1.${service}`, of: "first steps" }],
    queryFn: ({ signal }) =>
      callJson<Readonly<Record<string, readonly unknown[] | undefined>>>(`${service}/${operation}`, signal, {
        pagination: { pageSize: 1 },
      }),
  });
  return data !== undefined && (data[rows] ?? []).length === 0;
}

/** Returns whether there is no project, workflow or run that the person may read; false until it is known. */
export function useIsEmpty(): boolean {
  const lists = [useHasNone("ProjectService"), useHasNone("WorkflowService"), useHasNone("AgentService")];
  return lists.every((hasNone) => hasNone);
}
