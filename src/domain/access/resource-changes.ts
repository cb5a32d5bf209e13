import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { ResourceChange } from "#gen/service/v1/resource_service_pb.js";
import { DomainError, valueUnusable } from "../error.ts";

/** Maximum size in bytes of the resources that changes answer with: a short change may be of a workflow of 4 MiB. */
export const CHANGED_BYTES = 16 * 1024 * 1024;

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

/**
 * Requires that the resources that changes answer with are not too large together.
 * @param bytes size of their binary form
 * @throws DomainError SIZE_EXCEEDED
 */
export function requireChangedFit(bytes: number): void {
  if (bytes <= CHANGED_BYTES) return;
  throw new DomainError(
    ErrorReason.SIZE_EXCEEDED,
    `the resources before and after the changes have more than ${CHANGED_BYTES} bytes: make fewer changes at a time`,
    { resource: "changes", bytes: String(bytes), limit_bytes: String(CHANGED_BYTES) },
  );
}
