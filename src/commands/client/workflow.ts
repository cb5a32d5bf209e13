import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import type { Workflow, WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { type StartWorkflowRequestSchema, WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { StartError } from "../start-error.ts";
import { call, isNotFound, keyedCall, readPages } from "./call.ts";
import type { ServerAccess } from "./server-access.ts";

/** Maximum number of a workflow's executions that `workflow show` lists. */
const SHOWN_EXECUTIONS = 10;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns workflows, by id ascending. @throws StartError */
export function listWorkflows(
  access: ServerAccess,
  { search = "", limit }: { readonly search?: string | undefined; readonly limit: number },
): Promise<Workflow[]> {
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) =>
      workflowsOf(access).listWorkflows({ filter: { search }, pagination }, options),
    );
    return { elements: page.workflows, pagination: page.pagination };
  });
}

/** A workflow with its newest executions, or an execution with its actions. */
export type Shown =
  | { readonly workflow: Workflow; readonly executions: readonly WorkflowExecution[] }
  | { readonly execution: WorkflowExecution; readonly actions: readonly WorkflowExecutionAction[] };

/** Finds the workflow or execution with a name or id. @throws StartError */
export async function findShown(access: ServerAccess, named: string): Promise<Shown> {
  const workflow = await workflowOf(access, named).catch((error) => {
    if (UUID.test(named) && isNotFound(error)) return undefined;
    throw error;
  });
  if (workflow) return { workflow, executions: await executionsOf(access, workflow.id) };
  const execution = await getExecution(access, named);
  return { execution, actions: await actionsOf(access, named) };
}

/** Arguments of `chartroom workflow start`. */
export interface WorkflowStart {
  /** Each `key=value`. */
  readonly parameter: readonly string[];
  /** Targets that replace the workflow's; both empty to keep the workflow's. */
  readonly repository: readonly string[];
  readonly project: readonly string[];
}

/**
 * Starts a workflow.
 * @param named its name or id
 * @returns the id of the execution
 * @throws StartError
 */
export async function startWorkflow(
  access: ServerAccess,
  named: string,
  { parameter, repository, project }: WorkflowStart,
): Promise<string> {
  if (repository.length > 0 && project.length > 0)
    throw new StartError("give one of --repository and --project");
  const parameters = Object.fromEntries(parameter.map(parameterOf));
  const { id: workflowId } = await workflowOf(access, named);
  const request = {
    workflowId,
    parameters,
    ...contextOf(repository, project),
  } satisfies MessageInitShape<typeof StartWorkflowRequestSchema>;
  const { workflowExecution } = await keyedCall(access, (options) =>
    workflowsOf(access).startWorkflow(request, options),
  );
  return workflowExecution?.id ?? "";
}

/** Cancels an execution. @throws StartError */
export async function cancelExecution(access: ServerAccess, workflowExecutionId: string): Promise<void> {
  await call(access, (options) =>
    workflowsOf(access).cancelWorkflowExecution({ workflowExecutionId }, options),
  );
}

/**
 * Retries the failed actions of an execution.
 * @returns the id of the new execution
 * @throws StartError
 */
export async function retryExecution(access: ServerAccess, workflowExecutionId: string): Promise<string> {
  const { workflowExecution } = await keyedCall(access, (options) =>
    workflowsOf(access).retryFailedActions({ workflowExecutionId }, options),
  );
  return workflowExecution?.id ?? "";
}

/** Returns an execution. @throws StartError */
export async function getExecution(
  access: ServerAccess,
  workflowExecutionId: string,
): Promise<WorkflowExecution> {
  const { workflowExecution } = await call(access, (options) =>
    workflowsOf(access).getWorkflowExecution({ workflowExecutionId }, options),
  );
  if (workflowExecution) return workflowExecution;
  throw new StartError("the server has answered without the execution");
}

/** Returns the actions of an execution, by id ascending. @throws StartError */
export function actionsOf(access: ServerAccess, executionId: string): Promise<WorkflowExecutionAction[]> {
  const filter = { workflowExecutionIds: [executionId] };
  return readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call(access, (options) =>
      workflowsOf(access).listWorkflowExecutionActions({ filter, pagination }, options),
    );
    return { elements: page.workflowExecutionActions, pagination: page.pagination };
  });
}

function executionsOf(access: ServerAccess, workflowId: string): Promise<WorkflowExecution[]> {
  const filter = { workflowIds: [workflowId] };
  return readPages(SHOWN_EXECUTIONS, async (pagination) => {
    const page = await call(access, (options) =>
      workflowsOf(access).listWorkflowExecutions({ filter, pagination }, options),
    );
    return { elements: page.workflowExecutions, pagination: page.pagination };
  });
}

/** @throws StartError when no workflow has this name or id, or several have this name */
async function workflowOf(access: ServerAccess, named: string): Promise<Workflow> {
  if (UUID.test(named)) {
    const { workflow } = await call(access, (options) =>
      workflowsOf(access).getWorkflow({ workflowId: named }, options),
    );
    if (workflow) return workflow;
  }
  const found = await listWorkflows(access, { search: named, limit: Number.POSITIVE_INFINITY });
  const [workflow, ...others] = found.filter(({ metadata }) => metadata?.name === named);
  if (!workflow) {
    throw new StartError(`there is no workflow ${named}: chartroom workflow list shows those that there are`);
  }
  if (others.length === 0) return workflow;
  const ids = [workflow, ...others].map(({ id }) => id).join(", ");
  throw new StartError(`${others.length + 1} workflows have the name ${named}: give an id, of ${ids}`);
}

function parameterOf(given: string): [string, string] {
  const equals = given.indexOf("=");
  if (equals > 0) return [given.slice(0, equals), given.slice(equals + 1)];
  throw new StartError(`--parameter takes KEY=VALUE, and ${given} has no key and =`);
}

function contextOf(
  repoUrls: readonly string[],
  projectIds: readonly string[],
): Pick<MessageInitShape<typeof StartWorkflowRequestSchema>, "contextOverride"> {
  if (projectIds.length > 0) {
    return { contextOverride: { context: { case: "projects", value: { projectIds: [...projectIds] } } } };
  }
  if (repoUrls.length === 0) return {};
  const repositorySelector = { case: "repositoryUrls" as const, value: { repoUrls: [...repoUrls] } };
  return { contextOverride: { context: { case: "repositories", value: { repositorySelector } } } };
}

function workflowsOf({ server }: ServerAccess): Client<typeof WorkflowService> {
  return createClient(WorkflowService, createHttpTransport(server));
}
