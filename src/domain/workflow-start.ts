import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "./caller.ts";
import { pendingDeletion, permissionDenied, workflowDisabled } from "./error.ts";

/** @throws DomainError PENDING_DELETION, WORKFLOW_DISABLED */
export function refuseStart({ spec }: Workflow): void {
  if (spec?.deleting) throw pendingDeletion("workflow");
  if (spec?.disabled) throw workflowDisabled();
}

/**
 * Keeps a member from having a workflow run over something of its own choice as
 * another person, whom an administrator may have made its executor.
 *
 * @throws DomainError PERMISSION_DENIED
 */
export function refuseBorrowedContext({ metadata }: Workflow, caller: Caller): void {
  const executor = metadata?.executor;
  if (caller.role === "administrator" || executor?.principal !== Principal.USER) return;
  if (executor.id === caller.subject.id) return;
  throw permissionDenied(
    "start_workflow",
    "the workflow runs as another person: start it without contextOverride, or name a service account as its executor",
  );
}
