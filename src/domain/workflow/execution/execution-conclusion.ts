import { clone } from "@bufbuild/protobuf";
import { type WorkflowError, WorkflowErrorSchema } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionConclusion as Conclusion,
  WorkflowExecutionPhase as Phase,
  type WorkflowExecution,
  type WorkflowExecution_Status,
  type WorkflowExecutionAction,
} from "#gen/service/v1/workflow_pb.js";
import { addFailures, addWarnings } from "./workflow-error.ts";

/** Maximum number of failures, and of warnings, of its actions that an execution shows. */
const MAX_ACTION_ERRORS = 10;

/** Failures and warnings of an execution's actions, in order of arrival; each names its action. */
export interface ActionErrors {
  readonly failures: readonly WorkflowError[];
  readonly warnings: readonly WorkflowError[];
}

/**
 * Returns the errors of an execution's actions after a change of one of them; undefined when the
 * change adds none and replaces none.
 */
export function addedErrors(
  earlier: ActionErrors,
  before: WorkflowExecutionAction,
  after: WorkflowExecutionAction,
): ActionErrors | undefined {
  const failures = added(earlier.failures, before.status?.failures, after.status?.failures, after);
  const present = replaced(earlier.warnings, before.status?.warnings, after.status?.warnings, after);
  const warnings = added(present, before.status?.warnings, after.status?.warnings, after);
  return failures === earlier.failures && warnings === earlier.warnings ? undefined : { failures, warnings };
}

/** Returns whether a change of an action adds a failure or a warning, or replaces a warning. */
export function addsErrors(before: WorkflowExecutionAction, after: WorkflowExecutionAction): boolean {
  const counts = [before, after].map(
    ({ status }) => (status?.failures.length ?? 0) + (status?.warnings.length ?? 0),
  );
  return counts[0] !== counts[1] || replacements(before.status?.warnings, after.status?.warnings).length > 0;
}

/** Returns the warnings whose text differs from before. */
function replacements(
  before: readonly WorkflowError[] = [],
  after: readonly WorkflowError[] = [],
): readonly WorkflowError[] {
  return after.slice(0, before.length).filter(({ message }, index) => message !== before[index]?.message);
}

function replaced(
  earlier: readonly WorkflowError[],
  before: readonly WorkflowError[] | undefined,
  after: readonly WorkflowError[] | undefined,
  action: WorkflowExecutionAction,
): readonly WorkflowError[] {
  const changed = replacements(before, after);
  if (changed.length === 0) return earlier;
  return earlier.map((each) => {
    const isOfAction = each.meta.workflow_execution_action_id === action.id;
    const now = changed.find(({ reason }) => isOfAction && reason === each.reason);
    return now ? withAction(now, action) : each;
  });
}

function added(
  earlier: readonly WorkflowError[],
  before: readonly WorkflowError[] = [],
  after: readonly WorkflowError[] = [],
  action: WorkflowExecutionAction,
): readonly WorkflowError[] {
  const fresh = after.slice(before.length, before.length + MAX_ACTION_ERRORS - earlier.length);
  return fresh.length === 0 ? earlier : [...earlier, ...fresh.map((error) => withAction(error, action))];
}

function withAction(error: WorkflowError, { id, metadata }: WorkflowExecutionAction): WorkflowError {
  const copy = clone(WorkflowErrorSchema, error);
  copy.meta.workflow_execution_action_id = id;
  copy.meta.action_name = metadata?.actionName ?? "";
  return copy;
}

/**
 * Returns an execution as responses show it: with its conclusion, and with errors of its actions
 * after its own.
 * @param execution with its counts, and only its own errors
 */
export function concludedExecution(execution: WorkflowExecution, errors: ActionErrors): WorkflowExecution {
  const { status } = execution;
  if (!status) return execution;
  const failures = [...status.failures];
  const warnings = [...status.warnings];
  const answered = { ...status, failures, warnings, conclusion: conclusionOf(status) };
  addFailures(answered, ...errors.failures);
  addWarnings(answered, ...errors.warnings);
  return { ...execution, status: answered };
}

function conclusionOf({
  phase,
  failures,
  failedActionCount,
  doneActionCount,
}: WorkflowExecution_Status): Conclusion {
  if (phase === Phase.STOPPED) return Conclusion.STOPPED;
  if (phase !== Phase.COMPLETED) return Conclusion.UNSPECIFIED;
  if (failures.length > 0) return Conclusion.FAILED;
  if (failedActionCount === 0) return Conclusion.SUCCEEDED;
  return doneActionCount > 0 ? Conclusion.PARTIALLY_FAILED : Conclusion.FAILED;
}
