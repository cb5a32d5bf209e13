import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { SourceKind } from "./source/source-trust.ts";

/**
 * An error of the catalogue (ErrorReason). Message and metadata are safe to send: they contain no
 * secret and nothing of another organization.
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

/**
 * Returns the error for a caller that may not do this in its own organization; `permission` reads
 * like "create_personal_access_token".
 */
export function permissionDenied(permission: string, message: string): DomainError {
  return new DomainError(ErrorReason.PERMISSION_DENIED, message, { permission });
}

/**
 * Returns the error for a resource that is absent or in another organization; `resource` reads like
 * "project".
 */
export function notFound(resource: string): DomainError {
  return new DomainError(ErrorReason.NOT_FOUND, `${resource} not found`, { resource });
}

/** Returns the error for a well-formed value that cannot be used; `field` is its JSON path. */
export function valueUnusable(field: string, message: string): DomainError {
  return new DomainError(ErrorReason.VALUE_UNUSABLE, message, { field });
}

/** The error of a search that would have to read too many rows to finish in time. */
export class SearchTooLong extends DomainError {
  constructor(limitMs: number) {
    super(
      ErrorReason.VALUE_UNUSABLE,
      `the search takes longer than ${limitMs} ms: search for a longer text, or add another filter`,
      { field: "filter" },
    );
  }
}

/** Returns the error for a request whose caller no longer waits. */
export function deadlinePassed(): DomainError {
  return new DomainError(ErrorReason.DEADLINE_EXCEEDED, "the deadline of the request passed");
}

/** Returns the error for a resource that accepts no more changes. */
export function pendingDeletion(resource: string): DomainError {
  return new DomainError(ErrorReason.PENDING_DELETION, `the ${resource} is pending deletion`, { resource });
}

/** Returns the error for a resource in a phase in which the operation cannot act. */
export function phaseUnsuitable(resource: string, phase: string, message: string): DomainError {
  return new DomainError(ErrorReason.PHASE_UNSUITABLE, message, { resource, phase });
}

/** Returns the error for a resource that other resources still use. */
export function inUse(resource: string, usedBy: string, message: string): DomainError {
  return new DomainError(ErrorReason.IN_USE, message, { resource, used_by: usedBy });
}

/**
 * Returns the error for an organization that would be left without an administrator whose account
 * is not blocked.
 */
export function lastAdministrator(organizationId: string): DomainError {
  return new DomainError(
    ErrorReason.LAST_ADMINISTRATOR,
    "the organization would lose its last administrator: make another member administrator first",
    { organization_id: organizationId },
  );
}

/**
 * Returns the error for a value that is reserved for organizations that the operator marked as
 * enterprise; `field` is its JSON path.
 */
export function notEnterprise(field: string): DomainError {
  return new DomainError(
    ErrorReason.NOT_ENTERPRISE,
    `${field} is only for organizations that the operator marked as enterprise`,
    { field },
  );
}

/** Returns the error for an operation that is not allowed on the caller's own account. */
export function ownAccount(message: string): DomainError {
  return new DomainError(ErrorReason.OWN_ACCOUNT, message);
}

/**
 * Returns the error for a missing or invalid token; it is the same for every cause, so that it
 * reveals nothing about tokens.
 */
export function unauthenticated(): DomainError {
  return new DomainError(
    ErrorReason.UNAUTHENTICATED,
    "a valid access token is required: send it as `Authorization: Bearer cr_pat_...`",
  );
}

/** Returns the error for a token whose account is blocked. */
export function accountBlocked(): DomainError {
  return new DomainError(
    ErrorReason.ACCOUNT_BLOCKED,
    "the account is blocked: ask an administrator of its organization",
  );
}

/** Returns the error for a template environment without an initializer. */
export function initializerMissing(): DomainError {
  return new DomainError(
    ErrorReason.INITIALIZER_MISSING,
    "the environment has no initializer: choose one that was created from a repository or context URL",
  );
}

/** Returns the error for a page token of another query, or of no query of this server. */
export function pageTokenInvalid(): DomainError {
  return new DomainError(
    ErrorReason.PAGE_TOKEN_INVALID,
    "the page token was not issued for this query: repeat the query that issued it, or start without a token",
  );
}

/**
 * Returns the error for a lease that ran out, or for work that is finished or another's; it is the
 * same for every cause.
 */
export function leaseLost(): DomainError {
  return new DomainError(
    ErrorReason.LEASE_LOST,
    "the lease is lost: drop the work, and report nothing more of it",
  );
}

/** Returns the error for a workflow that starts nothing while it is disabled. */
export function workflowDisabled(): DomainError {
  return new DomainError(
    ErrorReason.WORKFLOW_DISABLED,
    "the workflow is disabled: enable it with UpdateWorkflow and disabled false",
  );
}

/** Returns the error for an execution without a context to run over. */
export function contextMissing(): DomainError {
  return new DomainError(
    ErrorReason.CONTEXT_MISSING,
    "the workflow has no manual trigger: give a contextOverride, or add such a trigger",
  );
}

/** Returns the error for an executor of a workflow that cannot act; the message names the cause. */
export function executorUnfit(executorId: string, message: string): DomainError {
  return new DomainError(ErrorReason.EXECUTOR_UNFIT, message, { executor_id: executorId });
}

/** Returns the error for an executor without a credential for a source-control host. */
export function credentialMissing(host: string): DomainError {
  return new DomainError(
    ErrorReason.CREDENTIAL_MISSING,
    `the workflow's executor has no credential for ${host}: store one with CreateHostAuthenticationToken`,
    { host },
  );
}

/** The remedy for a source of each kind for which the executor's credential is withheld. */
const SOURCE_REMEDIES: Readonly<Record<SourceKind, string>> = {
  project:
    "An administrator can adopt the project's source by setting its initializer again (UpdateProject); then start the work again",
  environment:
    "An environment keeps its source: make another one, with the repository named in the request, or once an administrator has set the project's initializer again",
  event:
    "An administrator can deliver the event again (RedeliverWorkflowTriggerEvent). For later events the executor or an administrator can rotate the webhook's secret (RotateWorkflowWebhookSecret), which takes effect after 24 hours",
  start: "The executor or an administrator can start the workflow (StartWorkflow)",
};

/**
 * Returns the error for a source that somebody else chose, for which the executor's credential for
 * a host is not used.
 * @param setBy id of who last set the source
 * @param kinds where the source may come from, at least one
 */
export function credentialWithheld(host: string, setBy: string, kinds: readonly SourceKind[]): DomainError {
  const refusal = `the executor's credential for ${host} is withheld: ${setBy} set the source, and is neither the executor, nor an administrator, nor a service account of the organization`;
  return new DomainError(
    ErrorReason.CREDENTIAL_WITHHELD,
    [refusal, ...kinds.map((kind) => SOURCE_REMEDIES[kind])].join(". "),
    { host, set_by: setBy },
  );
}

/** Returns the error for a request that names no agent while none is configured. */
export function agentMissing(): DomainError {
  return new DomainError(
    ErrorReason.AGENT_MISSING,
    "no agent is named and none is configured: name one of ListAgents, or have the operator make one the default",
  );
}

/**
 * Returns the error for an agent execution's queue that has changed since the revision that the
 * request expects.
 */
export function queueChanged(revision: number): DomainError {
  return new DomainError(
    ErrorReason.QUEUE_CHANGED,
    `the queue has changed and is at revision ${revision}: look at it with ListAgentInputs and try again`,
    { revision: String(revision) },
  );
}

/** Returns the error for an agent execution's queue that has reached its maximum. */
export function queueFull(limit: number): DomainError {
  return new DomainError(
    ErrorReason.QUEUE_FULL,
    `${limit} inputs wait in the queue of the agent run: delete some, or wait until some are delivered`,
    { limit: String(limit) },
  );
}

/** Returns the error for a decision about something else than what the approval asks for now. */
export function approvalChanged(digest: string): DomainError {
  return new DomainError(
    ErrorReason.APPROVAL_CHANGED,
    "the digest is not that of what the approval asks for: look at it with GetApproval and decide again",
    { digest },
  );
}

/** Returns the error for a value that must be unique but that another resource has; `field` is its JSON path. */
export function valueTaken(resource: string, field: string, message: string): DomainError {
  return new DomainError(ErrorReason.VALUE_TAKEN, message, { resource, field });
}

type Measure = "count" | "bytes";

/** Returns the error for more resources of a kind than there may be, or for more bytes of their values. */
export function limitReached(resource: string, limit: number, message: string, measure: Measure = "count") {
  return new DomainError(ErrorReason.LIMIT_REACHED, message, { resource, measure, limit: String(limit) });
}

/** Returns the error for a value of the contract that is not supported yet; `field` is its JSON path. */
export function notBuilt(field: string, message: string): DomainError {
  return new DomainError(ErrorReason.NOT_BUILT, message, { field });
}

/** Returns the error for an idempotency key that was used for another request. */
export function keyReused(operation: string): DomainError {
  return new DomainError(
    ErrorReason.IDEMPOTENCY_KEY_REUSED,
    "the idempotency key was used for another request: choose a new key for each request",
    { operation },
  );
}

/** Returns the error that ends a stream which can be resumed. */
export function shuttingDown(): DomainError {
  return new DomainError(
    ErrorReason.UNAVAILABLE,
    "the server is shutting down: resume after the last sequence number, another instance or a restart will answer",
  );
}

/** The holders of open streams that are counted, and the advice for one that has too many. */
const STREAM_ADVICE = {
  token: "end one of them, or give each program a token of its own",
  organization: "end one of them, or have programs share one stream",
  server: "call again later, or ask the operator for more",
} as const;

/** Returns the error for a stream beyond the maximum of its token, organization or server. */
export function tooManyStreams(scope: keyof typeof STREAM_ADVICE, limit: number): DomainError {
  const message = `the ${scope} has ${limit} streams open, which is the maximum: ${STREAM_ADVICE[scope]}`;
  return new DomainError(ErrorReason.TOO_MANY_STREAMS, message, { scope, limit: String(limit) });
}

/** Returns the error for a webhook's delivery without a valid signature or token. */
export function deliveryUnauthenticated(): DomainError {
  return new DomainError(
    ErrorReason.UNAUTHENTICATED,
    "a delivery must be signed with the workflow's webhook secret, or carry an access token that may start the workflow",
  );
}

/** Returns the error for a webhook's delivery whose body is not JSON; `problem` is text for people. */
export function deliveryMalformed(problem: string): DomainError {
  return new DomainError(ErrorReason.BODY_MALFORMED, problem);
}
