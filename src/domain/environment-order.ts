import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type ListEnvironmentsRequest_Sort,
  ListEnvironmentsRequest_SortField,
} from "#gen/service/v1/environment_service_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";

/** The order of an environment list: by id, and ascending, unless the request says otherwise. */
export function environmentOrder(sort: ListEnvironmentsRequest_Sort | undefined): {
  field: "id" | "archivedAt";
  direction: "asc" | "desc";
} {
  return {
    field: sort?.field === ListEnvironmentsRequest_SortField.ARCHIVED_AT ? "archivedAt" : "id",
    direction: sort?.order === SortOrder.DESC ? "desc" : "asc",
  };
}

/**
 * The bound on creation times, which are whole milliseconds: rounded up, so that
 * an environment made earlier within the bound's own millisecond is before it.
 */
export function createdBeforeMs(bound: Timestamp | undefined): number | undefined {
  return bound && Number(bound.seconds) * 1000 + Math.ceil(bound.nanos / 1e6);
}
