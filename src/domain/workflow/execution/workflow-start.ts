import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Workflow, WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { pendingDeletion, permissionDenied, workflowDisabled } from "../../error.ts";
import type { Caller } from "../../identity/caller.ts";
import { isSameSubject } from "../../source/source-trust.ts";

/** @throws DomainError PENDING_DELETION, WORKFLOW_DISABLED */
export function requireStartable({ spec }: Workflow): void {
  if (spec?.deleting) throw pendingDeletion("workflow");
  if (spec?.disabled) throw workflowDisabled();
}

/**
 * Keeps a member from having a workflow run over something of its own choice as
 * another person, whom an administrator may have made its executor.
 *
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayRunContextAs(workflow: Workflow, caller: Caller): void {
  if (!isBorrowed(workflow, caller)) return;
  throw permissionDenied(
    "start_workflow",
    "the workflow runs as another person: start it without contextOverride, or name a service account as its executor",
  );
}

/**
 * Keeps a member from having an earlier execution's steps done again as another
 * person, who was made the workflow's executor since and took on only what the
 * workflow says now.
 *
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayRetryAs(retried: WorkflowExecution, workflow: Workflow, caller: Caller): void {
  if (!isBorrowed(workflow, caller)) return;
  if (isSameSubject(retried.metadata?.executor, workflow.metadata?.executor)) return;
  throw permissionDenied(
    "start_workflow",
    "the workflow runs as another person since: start it again, or ask an administrator to retry",
  );
}

/**
 * Keeps a member from telling such a workflow of pull requests: an event names
 * the repository that is worked on, whatever really happened there.
 *
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayReportEventAs(workflow: Workflow, caller: Caller): void {
  if (!isBorrowed(workflow, caller)) return;
  throw permissionDenied(
    "start_workflow",
    "the workflow runs as another person: events of pull requests need its host's signature",
  );
}

/**
 * Keeps a member from the secret by which it could sign such events itself.
 *
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayReadSecretOf(workflow: Workflow, caller: Caller): void {
  if (!isBorrowed(workflow, caller)) return;
  throw permissionDenied(
    "get_workflow_webhook_secret",
    "the workflow runs as another person: only administrators get its secret",
  );
}

function isBorrowed({ metadata }: Workflow, caller: Caller): boolean {
  const executor = metadata?.executor;
  if (caller.role === "administrator" || executor?.principal !== Principal.USER) return false;
  return executor.id !== caller.subject.id;
}
