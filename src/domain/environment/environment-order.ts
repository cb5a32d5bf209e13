import {
  type ListEnvironmentsRequest_Sort,
  ListEnvironmentsRequest_SortField,
} from "#gen/service/v1/environment_service_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";

/** Returns the order of an environment list: by id, ascending, unless the request names another. */
export function environmentOrder(sort: ListEnvironmentsRequest_Sort | undefined): {
  field: "id" | "archivedAt";
  direction: "asc" | "desc";
} {
  return {
    field: sort?.field === ListEnvironmentsRequest_SortField.ARCHIVED_AT ? "archivedAt" : "id",
    direction: sort?.order === SortOrder.DESC ? "desc" : "asc",
  };
}
