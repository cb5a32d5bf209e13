import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";

/**
 * A failure with a place in the catalogue (ErrorReason). Message and metadata
 * are safe to send: they carry no secret and nothing of another organization.
 */
export class DomainError extends Error {
  override readonly name = "DomainError";
  readonly reason: ErrorReason;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(reason: ErrorReason, message: string, metadata: Record<string, string> = {}) {
    super(message);
    this.reason = reason;
    this.metadata = metadata;
  }
}

/** The caller may not do this in its own organization; `permission` reads like "create_personal_access_token". */
export function permissionDenied(permission: string, message: string): DomainError {
  return new DomainError(ErrorReason.PERMISSION_DENIED, message, { permission });
}

/** The resource is absent or in another organization; `resource` reads like "project". */
export function notFound(resource: string): DomainError {
  return new DomainError(ErrorReason.NOT_FOUND, `${resource} not found`, { resource });
}

/** A well-formed value that cannot be used; `field` is its JSON path. */
export function valueUnusable(field: string, message: string): DomainError {
  return new DomainError(ErrorReason.VALUE_UNUSABLE, message, { field });
}

/** The resource takes no changes any more. */
export function pendingDeletion(resource: string): DomainError {
  return new DomainError(ErrorReason.PENDING_DELETION, `the ${resource} is pending deletion`, { resource });
}

/** The resource is in a phase in which the operation cannot act. */
export function phaseUnsuitable(resource: string, phase: string, message: string): DomainError {
  return new DomainError(ErrorReason.PHASE_UNSUITABLE, message, { resource, phase });
}

/** Other resources still use this one. */
export function inUse(resource: string, usedBy: string, message: string): DomainError {
  return new DomainError(ErrorReason.IN_USE, message, { resource, used_by: usedBy });
}

/** The template environment says nothing about how it was initialized. */
export function initializerMissing(): DomainError {
  return new DomainError(
    ErrorReason.INITIALIZER_MISSING,
    "the environment has no initializer: choose one that was created from a repository or context URL",
  );
}

/** The page token belongs to another query, or to no query of this server. */
export function pageTokenInvalid(): DomainError {
  return new DomainError(
    ErrorReason.PAGE_TOKEN_INVALID,
    "the page token was not issued for this query: repeat the query that issued it, or start without a token",
  );
}
