import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import {
  type ListWorkflowsRequest_Sort,
  ListWorkflowsRequest_SortField as SortField,
} from "#gen/service/v1/workflow_service_pb.js";

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
