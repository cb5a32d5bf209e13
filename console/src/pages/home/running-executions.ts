import { callJson } from "../../api/json.ts";

/** A running execution, as the first page shows it. */
export interface RunningExecution {
  readonly id: string;
  readonly workflow: string;
  readonly phase: string;
  readonly startedAt: Date | undefined;
  readonly ended: number;
  readonly failed: number;
  readonly total: number;
}

/** The fields of an execution in the contract's JSON. */
interface ExecutionJson {
  readonly id: string;
  readonly metadata?: { readonly workflowId?: string; readonly startedAt?: string };
  readonly status?: Readonly<Record<string, unknown>>;
}

/** The JSON response of list operations. */
interface Listed {
  readonly workflowExecutions?: readonly ExecutionJson[];
  readonly workflows?: readonly { readonly id: string; readonly metadata?: { readonly name?: string } }[];
}

/** The key of the query, which is refetched when an event is about a workflow. */
export const RUNNING_KEY = [
  "connect-query",
  { serviceName: "service.v1.WorkflowService", of: "home" },
] as const;

/** Lists the running executions, newest first. */
export async function listRunningExecutions(
  pageSize: number,
  signal: AbortSignal,
): Promise<RunningExecution[]> {
  const phases = ["PENDING", "RUNNING", "STOPPING"].map((phase) => `WORKFLOW_EXECUTION_PHASE_${phase}`);
  const { workflowExecutions = [] } = await callJson<Listed>(
    "WorkflowService/ListWorkflowExecutions",
    signal,
    {
      filter: { statusPhases: phases },
      pagination: { pageSize },
    },
  );
  const workflowIds = [...new Set(workflowExecutions.map(({ metadata }) => metadata?.workflowId ?? ""))];
  const { workflows = [] } =
    workflowIds.length === 0
      ? {}
      : await callJson<Listed>("WorkflowService/ListWorkflows", signal, {
          filter: { workflowIds },
          pagination: { pageSize },
        });
  const names = new Map(workflows.map(({ id, metadata }) => [id, metadata?.name]));
  return workflowExecutions.map(({ id, metadata, status = {} }) => {
    const count = (name: string) => Number(status[`${name}ActionCount`] ?? 0);
    const ended = count("failed") + count("done") + count("stopped");
    return {
      id,
      workflow: names.get(metadata?.workflowId ?? "") ?? "A workflow",
      phase: String(status.phase ?? "").replace("WORKFLOW_EXECUTION_PHASE_", ""),
      startedAt: metadata?.startedAt === undefined ? undefined : new Date(metadata.startedAt),
      ended,
      failed: count("failed"),
      total: ended + count("pending") + count("running"),
    };
  });
}
