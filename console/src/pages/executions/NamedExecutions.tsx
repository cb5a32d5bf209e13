import { useQuery } from "@connectrpc/connect-query";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { ExecutionTable } from "./ExecutionTable.tsx";

/** Maximum workflows in a filter (contract). */
const MAX_NAMES = 25;

interface NamedExecutionsProps {
  readonly label: string;
  /** At most 25. */
  readonly rows: readonly WorkflowExecution[];
  readonly onMore?: (() => void) | undefined;
  readonly isLoadingMore?: boolean;
}

/** Lists executions with the names of their workflows. */
export function NamedExecutions({ label, rows, onMore, isLoadingMore = false }: NamedExecutionsProps) {
  const workflowIds = [...new Set(rows.map(({ metadata }) => metadata?.workflowId ?? ""))].toSorted();
  const { data } = useQuery(WorkflowService.method.listWorkflows, {
    filter: { workflowIds },
    pagination: { pageSize: MAX_NAMES },
  });
  const names = new Map(data?.workflows.map(({ id, metadata }) => [id, metadata?.name]));
  return (
    <ExecutionTable
      label={label}
      rows={rows}
      nameOf={({ metadata }) => names.get(metadata?.workflowId ?? "") ?? "…"}
      onMore={onMore}
      isLoadingMore={isLoadingMore}
    />
  );
}
