import { create } from "@bufbuild/protobuf";
import {
  type WorkflowError,
  WorkflowErrorCode,
  WorkflowErrorSchema,
} from "#gen/service/v1/workflow_error_pb.js";

const { UNSPECIFIED: WORKFLOW, ENVIRONMENT_ERROR: ENVIRONMENT } = WorkflowErrorCode;

/**
 * The reasons that the service itself reports. Each has the part of the system that it belongs to,
 * whether the same work may succeed later without a change by a person, and its metadata. Runners
 * add reasons of their own.
 */
export const WORKFLOW_REASONS = {
  // Warnings of an execution.
  /** A parameter that no expression uses. Metadata: `parameter`. */
  parameter_unused: { code: WORKFLOW, retriable: false },
  /** Metadata: `count`, a lower bound of the number that was left out. */
  actions_left_out: { code: WORKFLOW, retriable: false },
  /** A pull request from a fork started it: nothing of it runs before people approve it. */
  fork_approval_asked: { code: WORKFLOW, retriable: false },
  /** A pull request from a fork started it, and nobody was asked, because its trigger is of an earlier release. */
  fork_not_asked: { code: WORKFLOW, retriable: false },
  /** The host ended the search before it was complete. Metadata: `host`. */
  search_incomplete: { code: WORKFLOW, retriable: true },

  // Failures of an execution as a whole.
  /** Metadata: `host`. */
  repository_search_failed: { code: WORKFLOW, retriable: true },
  /** Metadata: `host`. */
  credential_missing: { code: WORKFLOW, retriable: false },
  /**
   * Somebody else set the source of the work. Metadata: `host`, `set_by`. Runners report it for an
   * action.
   */
  credential_withheld: { code: WORKFLOW, retriable: false },
  /** Also for an action. Metadata: `executor_id`. */
  executor_unfit: { code: WORKFLOW, retriable: false },

  // Failures of an action.
  /** Metadata: `project_id`. */
  project_missing: { code: WORKFLOW, retriable: false },
  /**
   * No class that it could run in accepts environments. Metadata: `project_id` or
   * `environment_class_id`.
   */
  environment_class_unusable: { code: ENVIRONMENT, retriable: false },
  /** A policy or a class rejected the action's environment. Metadata: as of the rejection. */
  environment_refused: { code: ENVIRONMENT, retriable: false },
  /** Its runner was lost in each attempt. Metadata: `attempt`. */
  attempts_exhausted: { code: ENVIRONMENT, retriable: true },
  /** The runner that could have taken it was deleted, alone or with its class. */
  runner_removed: { code: ENVIRONMENT, retriable: false },
  /** Metadata: `max_time_seconds`. */
  max_time_exceeded: { code: ENVIRONMENT, retriable: false },
  /** Its stored data cannot be read; the server's log names the cause. */
  work_unusable: { code: ENVIRONMENT, retriable: false },
  /** The runner released it without a request to stop. */
  stopped_by_runner: { code: ENVIRONMENT, retriable: true },

  // Failures of an approval step, and of an execution as a whole.
  /** Somebody denied it. Metadata: `approval_id`. */
  approval_denied: { code: WORKFLOW, retriable: false },
  /** Nobody approved it in time. Metadata: `approval_id`. */
  approval_expired: { code: WORKFLOW, retriable: false },
  /** The step asks for something else than was approved. Metadata: `approval_id`. */
  approval_changed: { code: WORKFLOW, retriable: false },

  // Failures of a step.
  /** The runner gave no other reason. */
  step_failed: { code: ENVIRONMENT, retriable: false },
  /** Metadata: `output`, the key. */
  output_missing: { code: WORKFLOW, retriable: false },
  /** Metadata: `output`, the key. */
  output_invalid: { code: WORKFLOW, retriable: false },

  // Warnings of an action.
  /** Metadata: `runner_id`, `attempt`. */
  attempt_lost: { code: ENVIRONMENT, retriable: true },
  /** Its environment was removed while it waited for an approval: its steps begin again. */
  workspace_lost: { code: ENVIRONMENT, retriable: true },
  /** The executor has as many environments as a policy allows. */
  waiting_for_environment_limit: { code: ENVIRONMENT, retriable: true },
  /** No connected runner supports the policies that apply to it. Metadata: `policies`, their names. */
  waiting_for_runner: { code: ENVIRONMENT, retriable: true },
} as const satisfies Readonly<Record<string, { code: WorkflowErrorCode; retriable: boolean }>>;

export type WorkflowReason = keyof typeof WORKFLOW_REASONS;

/** Returns a failure or warning of the service itself. */
export function workflowError(
  reason: WorkflowReason,
  message: string,
  meta: Readonly<Record<string, string>> = {},
): WorkflowError {
  const { code, retriable } = WORKFLOW_REASONS[reason];
  return create(WorkflowErrorSchema, { code, reason, message, meta: { ...meta }, retry: { retriable } });
}

/** The fields that the statuses of executions and actions have in common. */
interface StatusWithErrors {
  failures: WorkflowError[];
  warnings: WorkflowError[];
  failureMessage: string;
  warningMessage: string;
}

/** Adds failures, also to the deprecated field. */
export function addFailures(status: StatusWithErrors, ...failures: readonly WorkflowError[]): void {
  status.failures.push(...failures);
  status.failureMessage = messageOfError(status.failures);
}

/** Adds warnings, also to the deprecated field. */
export function addWarnings(status: StatusWithErrors, ...warnings: readonly WorkflowError[]): void {
  status.warnings.push(...warnings);
  status.warningMessage = messageOfError(status.warnings);
}

/** Returns the messages in one text, one per line. */
export function messageOfError(errors: readonly WorkflowError[]): string {
  return errors.map(({ message }) => message).join("\n");
}
