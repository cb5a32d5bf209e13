import { type Sort, SortOrder } from "#gen/service/v1/pagination_pb.js";
import {
  type ListWorkflowsRequest_Sort,
  ListWorkflowsRequest_SortField as SortField,
} from "#gen/service/v1/workflow_service_pb.js";
import { valueUnusable } from "../error.ts";

export interface WorkflowOrder {
  /**
   * Names are compared without regard to case; completion is the time when an execution last ended.
   */
  readonly field: "id" | "name" | "completion";
  readonly direction: "asc" | "desc";
}

/** Returns the order of a list; equal names and times are ordered by id in the same direction. */
export function workflowOrder(sort: ListWorkflowsRequest_Sort | undefined): WorkflowOrder {
  const field = FIELDS[sort?.field ?? SortField.UNSPECIFIED];
  if (sort?.order === SortOrder.ASC || sort?.order === SortOrder.DESC) {
    return { field, direction: sort.order === SortOrder.ASC ? "asc" : "desc" };
  }
  return { field, direction: field === "completion" ? "desc" : "asc" };
}

const FIELDS = {
  [SortField.UNSPECIFIED]: "id",
  [SortField.NAME]: "name",
  [SortField.RECENTLY_COMPLETED]: "completion",
} as const;

/**
 * Returns the direction of a list of executions, which is sorted by id only.
 * @throws DomainError VALUE_UNUSABLE for any other field
 */
export function executionOrder(sort: Sort | undefined): "asc" | "desc" {
  if (sort && sort.field !== "" && sort.field !== "id") {
    throw valueUnusable("sort.field", "executions are sorted by id only, which is the order of their start");
  }
  return sort?.order === SortOrder.ASC ? "asc" : "desc";
}
