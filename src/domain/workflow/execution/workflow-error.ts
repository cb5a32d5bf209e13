import { create } from "@bufbuild/protobuf";
import {
  type WorkflowError,
  WorkflowErrorCode,
  WorkflowErrorSchema,
} from "#gen/service/v1/workflow_error_pb.js";

const { UNSPECIFIED: WORKFLOW, ENVIRONMENT_ERROR: ENVIRONMENT } = WorkflowErrorCode;

/**
 * The reasons that the service itself gives, each with the part it belongs to,
 * whether the same work may succeed later without a change by a person, and its
 * metadata. Runners add reasons of their own.
 */
export const WORKFLOW_REASONS = {
  // Warnings of an execution.
  /** Metadata: `parameter`, which nothing uses. */
  parameter_unused: { code: WORKFLOW, retriable: false },
  /** Metadata: `count`, how many were left out at least. */
  actions_left_out: { code: WORKFLOW, retriable: false },
  /** The host gave up before it had looked everywhere. Metadata: `host`. */
  search_incomplete: { code: WORKFLOW, retriable: true },

  // Failures of an execution as a whole.
  /** Metadata: `host`. */
  repository_search_failed: { code: WORKFLOW, retriable: true },
  /** Metadata: `host`. */
  credential_missing: { code: WORKFLOW, retriable: false },
  /** Somebody else set what the work begins from. Metadata: `host`, `set_by`. Runners give it for an action. */
  credential_withheld: { code: WORKFLOW, retriable: false },
  /** Also of an action. Metadata: `executor_id`. */
  executor_unfit: { code: WORKFLOW, retriable: false },

  // Failures of an action.
  /** Metadata: `project_id`. */
  project_missing: { code: WORKFLOW, retriable: false },
  /** No class that it could run in takes environments. Metadata: `project_id` or `environment_class_id`. */
  environment_class_unusable: { code: ENVIRONMENT, retriable: false },
  /** A policy or a class refused the action's environment. Metadata: as of the refusal. */
  environment_refused: { code: ENVIRONMENT, retriable: false },
  /** Its runner was lost with each attempt. Metadata: `attempt`. */
  attempts_exhausted: { code: ENVIRONMENT, retriable: true },
  /** The runner that could have taken it, alone or with its class, was deleted. */
  runner_removed: { code: ENVIRONMENT, retriable: false },
  /** Metadata: `max_time_seconds`. */
  max_time_exceeded: { code: ENVIRONMENT, retriable: false },
  /** What the server stored of it cannot be read; its log names the cause. */
  work_unusable: { code: ENVIRONMENT, retriable: false },
  /** The runner let go of it although nobody had asked for that. */
  stopped_by_runner: { code: ENVIRONMENT, retriable: true },

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
  /** The executor has as many environments as a policy allows. */
  waiting_for_environment_limit: { code: ENVIRONMENT, retriable: true },
} as const satisfies Readonly<Record<string, { code: WorkflowErrorCode; retriable: boolean }>>;

export type WorkflowReason = keyof typeof WORKFLOW_REASONS;

/** A failure or warning that the service itself finds. */
export function workflowError(
  reason: WorkflowReason,
  message: string,
  meta: Readonly<Record<string, string>> = {},
): WorkflowError {
  const { code, retriable } = WORKFLOW_REASONS[reason];
  return create(WorkflowErrorSchema, { code, reason, message, meta: { ...meta }, retry: { retriable } });
}

/** What the statuses of executions and actions have in common. */
interface Troubled {
  failures: WorkflowError[];
  warnings: WorkflowError[];
  failureMessage: string;
  warningMessage: string;
}

/** Adds failures, and tells them in the deprecated field too. */
export function addFailures(status: Troubled, ...failures: readonly WorkflowError[]): void {
  status.failures.push(...failures);
  status.failureMessage = messageOfError(status.failures);
}

/** Adds warnings, and tells them in the deprecated field too. */
export function addWarnings(status: Troubled, ...warnings: readonly WorkflowError[]): void {
  status.warnings.push(...warnings);
  status.warningMessage = messageOfError(status.warnings);
}

/** The messages in one text, a line each. */
export function messageOfError(errors: readonly WorkflowError[]): string {
  return errors.map(({ message }) => message).join("\n");
}
