import { createClient } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";
import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { transport } from "../../api/server.tsx";

const workflows = createClient(WorkflowService, transport);

/** Actions per page (contract), and the maximum number of pages of one execution: its actions and the report. */
const PAGE = 100;
const MAX_PAGES = 11;

/** Reads all actions of an execution, at most 1,001. Workflow events make it read them again (api/events.ts). */
export function useActions(executionId: string) {
  return useQuery({
    queryKey: ["connect-query", { serviceName: "service.v1.WorkflowService", actionsOf: executionId }],
    queryFn: ({ signal }) => readActions(executionId, signal),
  });
}

async function readActions(executionId: string, signal: AbortSignal): Promise<WorkflowExecutionAction[]> {
  const actions: WorkflowExecutionAction[] = [];
  let token = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const read = await workflows.listWorkflowExecutionActions(
      { filter: { workflowExecutionIds: [executionId] }, pagination: { pageSize: PAGE, token } },
      { signal },
    );
    actions.push(...read.workflowExecutionActions);
    token = read.pagination?.nextToken ?? "";
    if (token === "") break;
  }
  return actions;
}
