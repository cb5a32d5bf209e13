import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import {
  type ListWorkflowsRequest_Sort,
  ListWorkflowsRequest_SortField as SortField,
} from "#gen/service/v1/workflow_service_pb.js";

export interface WorkflowOrder {
  /** Names without regard to case; completion is when an execution last came to its end. */
  readonly field: "id" | "name" | "completion";
  readonly direction: "asc" | "desc";
}

/** The order that a list asks for; equal names and times stand by id in the same direction. */
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
