import { type Sort, SortOrder } from "#gen/service/v1/pagination_pb.js";
import { valueUnusable } from "../error.ts";

/**
 * Returns the order of a project list: by popularity, highest first, unless the request names the id, which sorts
 * oldest first.
 * @throws DomainError VALUE_UNUSABLE for a field that projects cannot be sorted by
 */
export function projectOrder(sort: Sort | undefined): {
  field: "id" | "popularity";
  direction: "asc" | "desc";
} {
  const field = sort?.field || "popularity";
  if (field !== "id" && field !== "popularity") {
    throw valueUnusable("sort.field", `projects can be sorted by "id" and "popularity", not by "${field}"`);
  }
  const defaultDirection = field === "id" ? "asc" : "desc";
  const requested = {
    [SortOrder.UNSPECIFIED]: defaultDirection,
    [SortOrder.ASC]: "asc",
    [SortOrder.DESC]: "desc",
  } as const;
  return { field, direction: requested[sort?.order ?? SortOrder.UNSPECIFIED] };
}
