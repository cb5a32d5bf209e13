import { Principal } from "#gen/service/v1/identity_pb.js";
import {
  type Workflow,
  type WorkflowExecution,
  type WorkflowExecutionAction,
  WorkflowExecutionPhase,
  type WorkflowTriggerContext,
} from "#gen/service/v1/workflow_pb.js";
import {
  pendingDeletion,
  permissionDenied,
  phaseUnsuitable,
  valueUnusable,
  workflowDisabled,
} from "../../error.ts";
import type { Caller } from "../../identity/caller.ts";
import { isSameSubject } from "../../source/source-trust.ts";
import { hasEnded, phaseOfExecution } from "./workflow-execution.ts";

/**
 * Requires that a workflow can be started.
 * @throws DomainError PENDING_DELETION, WORKFLOW_DISABLED
 */
export function requireStartable({ spec }: Workflow): void {
  if (spec?.deleting) throw pendingDeletion("workflow");
  if (spec?.disabled) throw workflowDisabled();
}

/**
 * Requires that the caller may run the workflow over a context of its own choice. Without this check,
 * a member could act as another person whom an administrator has made the executor.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayRunContextAs(workflow: Workflow, caller: Caller): void {
  if (!runsAsAnotherPerson(workflow, caller)) return;
  throw permissionDenied(
    "start_workflow",
    "the workflow runs as another person: start it without contextOverride, or name a service account as its executor",
  );
}

/**
 * Requires that a caller may start a workflow by the role of a group. Such a role does not give it the
 * rights of the person that the workflow runs as.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayStartShared(workflow: Workflow, caller: Caller): void {
  if (!runsAsAnotherPerson(workflow, caller)) return;
  throw permissionDenied(
    "start_workflow",
    "the workflow runs as another person, whose credentials are not shared with it: it needs a service account as its executor",
  );
}

/**
 * Requires that the caller may retry an earlier execution. Without this check, a member could repeat
 * old steps as another person, who became the executor later and accepted only the present content of
 * the workflow.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayRetryAs(retried: WorkflowExecution, workflow: Workflow, caller: Caller): void {
  if (!runsAsAnotherPerson(workflow, caller)) return;
  if (isSameSubject(retried.metadata?.executor, workflow.metadata?.executor)) return;
  throw permissionDenied(
    "start_workflow",
    "the workflow now runs as another person: start it again, or ask an administrator to retry",
  );
}

/**
 * Requires that the caller may report events of pull requests to the workflow. Such an event names the
 * repository, so with a made-up event a member could choose what another person's workflow works on.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayReportEventAs(workflow: Workflow, caller: Caller): void {
  if (!runsAsAnotherPerson(workflow, caller)) return;
  throw permissionDenied(
    "start_workflow",
    "the workflow runs as another person: events of pull requests need its host's signature",
  );
}

/**
 * Requires that the caller may read the webhook secret, with which it could sign events of pull
 * requests itself.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayReadSecretOf(workflow: Workflow, caller: Caller): void {
  if (!runsAsAnotherPerson(workflow, caller)) return;
  throw permissionDenied(
    "get_workflow_webhook_secret",
    "the workflow runs as another person: only administrators get its secret",
  );
}

function runsAsAnotherPerson({ metadata }: Workflow, caller: Caller): boolean {
  const executor = metadata?.executor;
  if (caller.role === "administrator" || executor?.principal !== Principal.USER) return false;
  return executor.id !== caller.subject.id;
}

/** Requires that the execution to retry has ended. @throws DomainError PHASE_UNSUITABLE */
export function requireExecutionEnded(retried: WorkflowExecution): void {
  if (!hasEnded(retried)) throw unsuitable(retried, "it has not ended: cancel it, or wait for its end");
}

/**
 * Returns the actions to retry. The report is among them only if it is the only one, since it always
 * follows the other actions.
 * @throws DomainError PHASE_UNSUITABLE when no action failed
 */
export function retriableActions(
  retried: WorkflowExecution,
  failed: readonly WorkflowExecutionAction[],
): readonly WorkflowExecutionAction[] {
  if (failed.length === 0) throw unsuitable(retried, "it has no failed action to retry");
  const others = failed.filter(({ metadata }) => !metadata?.report);
  return others.length > 0 ? others : failed;
}

/** Requires that a context does not come from an event, since a manual start has none. @throws DomainError VALUE_UNUSABLE */
export function requireNoEventContext({ context }: WorkflowTriggerContext): void {
  if (context.case !== "fromTrigger") return;
  throw valueUnusable(
    "contextOverride.fromTrigger",
    "a workflow that is started manually gets no context from an event: name projects, repositories or an agent",
  );
}

function unsuitable(execution: WorkflowExecution, message: string) {
  const phase = WorkflowExecutionPhase[phaseOfExecution(execution)] ?? "";
  return phaseUnsuitable("workflow execution", phase, message);
}
