import { toJson } from "@bufbuild/protobuf";
import {
  type ListWorkflowExecutionActionsRequest,
  ListWorkflowExecutionActionsRequest_FilterSchema,
  type ListWorkflowExecutionOutputsRequest,
  ListWorkflowExecutionOutputsRequest_FilterSchema,
  type ListWorkflowExecutionsRequest,
  ListWorkflowExecutionsRequest_FilterSchema,
} from "#gen/service/v1/workflow_service_pb.js";
import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { fold } from "../../../domain/text/fold.ts";
import { withSteps } from "../../../domain/workflow/execution/workflow-action.ts";
import { executionOrder } from "../../../domain/workflow/workflow-order.ts";
import { findAction } from "../../../store/workflow/workflow-action.ts";
import { findWholeExecution } from "../../../store/workflow/workflow-execution.ts";
import {
  findActionOutputPage,
  findActionPage,
  findExecutionPage,
} from "../../../store/workflow/workflow-execution-list.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { listPage } from "../../call/page.ts";

/** Returns an execution. @throws DomainError NOT_FOUND */
export async function getWorkflowExecution({ store }: ServiceDependencies, caller: Caller, id: string) {
  const stored = await findWholeExecution(store.reader, caller, id);
  if (!stored) throw notFound("workflow execution");
  return { workflowExecution: stored.toResponse() };
}

/** Returns an action with its steps. @throws DomainError NOT_FOUND */
export async function getWorkflowExecutionAction({ store }: ServiceDependencies, caller: Caller, id: string) {
  const action = await findAction(store.reader, caller, id);
  const stored = await findWholeExecution(store.reader, caller, action?.metadata?.workflowExecutionId ?? "");
  if (!action || !stored) throw notFound("workflow execution action");
  return { workflowExecutionAction: withSteps(action, stored.execution) };
}

/** Returns one page of the organization's executions, the newest first unless the request says otherwise. */
export async function listWorkflowExecutions(
  deps: ServiceDependencies,
  caller: Caller,
  { filter, pagination, sort }: ListWorkflowExecutionsRequest,
) {
  const direction = executionOrder(sort);
  const criteria = {
    ids: filter?.workflowExecutionIds ?? [],
    workflowIds: filter?.workflowIds ?? [],
    phases: filter?.statusPhases ?? [],
    hasFailedActions: filter?.hasFailedActions,
    search: fold(filter?.search ?? ""),
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListWorkflowExecutions",
    parts: [filter && toJson(ListWorkflowExecutionsRequest_FilterSchema, filter), direction],
    pagination,
    search: criteria.search,
    find: (db, after, limit) => findExecutionPage(db, caller, criteria, direction, after, limit),
  });
  return { ...page, workflowExecutions: rows };
}

/** Returns one page of the organization's actions, by id ascending. */
export async function listWorkflowExecutionActions(
  deps: ServiceDependencies,
  caller: Caller,
  { filter, pagination }: ListWorkflowExecutionActionsRequest,
) {
  const criteria = {
    ids: filter?.workflowExecutionActionIds ?? [],
    executionIds: filter?.workflowExecutionIds ?? [],
    workflowIds: filter?.workflowIds ?? [],
    phases: filter?.phases ?? [],
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListWorkflowExecutionActions",
    parts: [filter && toJson(ListWorkflowExecutionActionsRequest_FilterSchema, filter)],
    pagination,
    find: (db, after, limit) => findActionPage(db, caller, criteria, after, limit),
  });
  return { ...page, workflowExecutionActions: rows };
}

/** Returns one page of the outputs of actions, by the id of the action ascending. */
export async function listWorkflowExecutionOutputs(
  deps: ServiceDependencies,
  caller: Caller,
  { filter, pagination }: ListWorkflowExecutionOutputsRequest,
) {
  const executionIds = filter?.workflowExecutionIds ?? [];
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListWorkflowExecutionOutputs",
    parts: [filter && toJson(ListWorkflowExecutionOutputsRequest_FilterSchema, filter)],
    pagination,
    find: (db, after, limit) => findActionOutputPage(db, caller, executionIds, after, limit),
  });
  return { ...page, outputs: rows };
}
