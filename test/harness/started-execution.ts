import { type Answer, post } from "./call.ts";
import { succeeded } from "./fake-runner.ts";
import type { ReachableServer } from "./server.ts";

/** Settings of a workflow to start; the defaults are one repository and one command. */
export interface WorkflowRunOptions {
  /** Token of the user who creates and starts it; by default the server's first administrator. */
  readonly token?: string;
  /** Number of repositories, one action each. */
  readonly actions?: number;
  readonly maxParallel?: number;
  readonly steps?: readonly object[];
  readonly report?: object;
  /** Returns the clone URL of a repository by its index. */
  readonly repository?: (index: number) => string;
  readonly environmentClassId?: string;
  /** A context to use instead of repositories. */
  readonly context?: object;
  readonly maxTime?: string;
  readonly parameters?: Readonly<Record<string, string>>;
}

/** An execution, as its starter sees it. */
export interface StartedExecution {
  readonly workflowId: string;
  readonly executionId: string;
  execution(): Promise<Answer["body"]>;
  /** Returns the actions, up to 100, in order. */
  actions(): Promise<Answer["body"][]>;
  cancel(): Promise<Answer["body"]>;
  /** Retries its failed actions in a new execution. */
  retry(): Promise<StartedExecution>;
  /** Calls any operation of WorkflowService as its starter. */
  call(operation: string, body: object): Promise<Answer["body"]>;
}

/** Creates a workflow and starts it. */
export async function startExecution(
  server: Pick<ReachableServer, "url" | "token">,
  run: WorkflowRunOptions = {},
): Promise<StartedExecution> {
  const { token = server.token, actions = 1, maxParallel = actions, steps = [task("true")] } = run;
  const { repository = (index) => `https://git.example.org/team/r${index}.git`, report, parameters } = run;
  const call = (operation: string, body: object): Promise<Answer["body"]> =>
    succeeded(post(server, `WorkflowService/${operation}`, body, token));
  const context = run.context ?? {
    repositories: {
      repositoryUrls: { repoUrls: Array.from({ length: actions }, (_, index) => repository(index)) },
      ...(run.environmentClassId && { environmentClassId: run.environmentClassId }),
    },
  };
  const perExecution = run.maxTime && { perExecution: { maxTime: run.maxTime } };
  const { workflow } = await call("CreateWorkflow", {
    name: "Run",
    triggers: [{ manual: {}, context }],
    action: { limits: { maxParallel, maxTotal: Math.max(actions, maxParallel), ...perExecution }, steps },
    ...(report && { report: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ report }] } }),
  });
  const started = await call("StartWorkflow", { workflowId: workflow.id, ...(parameters && { parameters }) });
  return startedExecution(call, started.workflowExecution);
}

function startedExecution(
  call: StartedExecution["call"],
  { id: executionId, metadata }: Answer["body"],
): StartedExecution {
  const listed = { filter: { workflowExecutionIds: [executionId] }, pagination: { pageSize: 100 } };
  const named = { workflowExecutionId: executionId };
  return {
    workflowId: metadata.workflowId,
    executionId,
    execution: async () => (await call("GetWorkflowExecution", named)).workflowExecution,
    actions: async () => (await call("ListWorkflowExecutionActions", listed)).workflowExecutionActions,
    cancel: () => call("CancelWorkflowExecution", named),
    retry: async () => startedExecution(call, (await call("RetryFailedActions", named)).workflowExecution),
    call,
  };
}

export function task(command: string) {
  return { task: { command } };
}
