import type { ResourceChange } from "#gen/service/v1/resource_service_pb.js";
import { valueUnusable } from "../error.ts";

/**
 * Requires that no two changes have the same placeholder.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireDistinctPlaceholders(changes: readonly ResourceChange[]): void {
  const seen = new Set<string>();
  for (const [index, { placeholderId }] of changes.entries()) {
    if (placeholderId === "") continue;
    const field = `changes[${index}].placeholderId`;
    if (seen.has(placeholderId)) throw valueUnusable(field, `${field} is that of an earlier change`);
    seen.add(placeholderId);
  }
}
