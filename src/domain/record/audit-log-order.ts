import { type Sort, SortOrder } from "#gen/service/v1/pagination_pb.js";
import { valueUnusable } from "../error.ts";

/**
 * Returns the sort direction of a list of the audit trail, which can be sorted by time only.
 * @throws DomainError VALUE_UNUSABLE for another field
 */
export function auditLogDirection(sort: Sort | undefined): "asc" | "desc" {
  const field = sort?.field || "created_at";
  if (field !== "created_at") {
    throw valueUnusable("sort.field", `the audit trail is sorted by "created_at", not by "${field}"`);
  }
  return sort?.order === SortOrder.ASC ? "asc" : "desc";
}
