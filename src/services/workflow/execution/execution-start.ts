import { create } from "@bufbuild/protobuf";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import {
  type Workflow,
  type WorkflowExecution,
  type WorkflowExecutionTrigger,
  WorkflowExecutionTriggerSchema,
  WorkflowSchema,
  type WorkflowTriggerContext,
} from "#gen/service/v1/workflow_pb.js";
import { contextMissing, credentialMissing } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import type { Policies } from "../../../domain/policy/policies.ts";
import { uniqueSubjects } from "../../../domain/source/source-trust.ts";
import { workflowError } from "../../../domain/workflow/execution/workflow-error.ts";
import {
  type ExecutionTemplate,
  executionSearchText,
  newExecution,
} from "../../../domain/workflow/execution/workflow-execution.ts";
import { requireStepLimit, searchOf } from "../../../domain/workflow/execution/workflow-expansion.ts";
import { requireStartable } from "../../../domain/workflow/execution/workflow-start.ts";
import {
  type RenderedTemplate,
  type RenderedWorkflow,
  renderWorkflow,
} from "../../../domain/workflow/parameter/workflow-parameters.ts";
import { forkWarnings, needsForkApproval } from "../../../domain/workflow/trigger/fork-work.ts";
import { requireStepsAllowed, requireWorkflowAllowed } from "../../../domain/workflow/workflow-policy.ts";
import { requireWorkflowFits } from "../../../domain/workflow/workflow-size.ts";
import { insertSourceSetters } from "../../../store/identity/source-setter.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { findRunnerWithHostToken } from "../../../store/runner/host-token-choice.ts";
import type { Scope, Snapshot, WriteTransaction } from "../../../store/store.ts";
import { findWholeExecution, insertExecution } from "../../../store/workflow/workflow-execution.ts";
import { newTrace } from "../../call/new-trace.ts";
import { getExecutorAsCaller } from "../../identity/executor.ts";
import { expandExecution } from "./execution-expand.ts";
import { askForkApproval } from "./fork-approval.ts";

/** What an execution starts from. */
export interface ExecutionStart {
  readonly organizationId: string;
  readonly workflow: Workflow;
  /** The trigger that fired, with the context to run over; its parameter expressions are not substituted yet. */
  readonly trigger: WorkflowExecutionTrigger;
  /** Index of the trigger in the workflow's list; null for a start whose context is in the request. */
  readonly triggerIndex: number | null;
  /** The caller of StartWorkflow; for other triggers the workflow's executor. */
  readonly creator: Subject;
  readonly parameters: Readonly<Record<string, string>>;
  /**
   * The setters of a source that the workflow itself does not name: the caller that sent a context, or the possible
   * senders of an event. Absent otherwise. Parameters do not count: they are only inserted into texts and choose no
   * repository.
   */
  readonly sourceSetters?: readonly Subject[] | undefined;
}

/**
 * Starts an execution of a workflow, and copies the parts of the workflow that it needs. Its actions are created
 * immediately; those of a search for repositories are created by jobs/hosts/execution-expansion.ts. The caller must
 * have checked the creator's permission.
 *
 * @returns the new execution
 * @throws DomainError WORKFLOW_DISABLED, PENDING_DELETION, EXECUTOR_UNFIT, CONTEXT_MISSING, CREDENTIAL_MISSING;
 * VALUE_UNUSABLE for a parameter that is missing or does not fit; SIZE_EXCEEDED when parameters make the copy too
 * large; PolicyDenied
 */
export async function startExecution(
  tx: WriteTransaction,
  start: ExecutionStart,
): Promise<WorkflowExecution> {
  const { organizationId, workflow, trigger, triggerIndex, creator } = start;
  const scope = { organizationId };
  const { executor, rendered } = await checkStart(tx, start);
  const execution = newExecution({
    ...newExecutionIds(tx, workflow),
    creator,
    executor: executor.subject,
    trigger: create(WorkflowExecutionTriggerSchema, { ...trigger, context: rendered.context }),
    action: rendered.action,
    report: rendered.report,
    warnings: [...rendered.unusedKeys.map(unusedParameterWarning), ...forkWarnings(trigger)],
    retriedExecutionId: "",
  });
  const searchText = executionSearchText(execution.id, workflow.metadata?.name ?? "");
  await insertExecution(tx, scope, execution, { triggerIndex, variables: rendered.environment, searchText });
  const setters = uniqueSubjects(contentAuthorsOf(workflow), start.sourceSetters ?? []);
  await insertSourceSetters(tx, scope, "workflow_execution", execution, setters);
  if (needsForkApproval(execution)) await askForkApproval(tx, scope, execution);
  else if (!searchOf(rendered.context)) await expandExecution(tx, scope, execution);
  return readInsertedExecution(tx, scope, execution.id);
}

/**
 * Checks a start without starting anything.
 *
 * @returns the executor, and the parts that the execution copies
 * @throws DomainError, PolicyDenied as {@link startExecution}
 */
export async function checkStart(
  tx: Snapshot,
  { organizationId, workflow, trigger, triggerIndex, parameters }: ExecutionStart,
): Promise<{ executor: Caller; rendered: RenderedWorkflow }> {
  const scope = { organizationId };
  requireStartable(workflow);
  if (!trigger.context) throw contextMissing();
  const policies = await findPolicies(tx.db, scope);
  const executor = await getStartableExecutor(tx, scope, policies, workflow, trigger.context);
  const template = templateOf(workflow, trigger.context, triggerIndex);
  const rendered = renderWorkflow(template, parameters);
  requireStepLimit(rendered.context, rendered.action);
  requireStepsAllowed(policies, rendered.action);
  if (rendered.hasParameters) requireWorkflowFits(copiedWorkflow(rendered), copiedWorkflow(template));
  return { executor, rendered };
}

/**
 * Returns the parts of a workflow that an execution copies.
 * @param triggerIndex as in {@link ExecutionStart}
 */
export function templateOf(
  { spec }: Workflow,
  context: WorkflowTriggerContext,
  triggerIndex: number | null,
): RenderedTemplate {
  return {
    action: spec?.action,
    report: spec?.report,
    context,
    contextPath: triggerIndex === null ? "contextOverride" : `triggers[${triggerIndex}].context`,
    declared: spec?.parameters ?? [],
  };
}

/**
 * Returns the executor of a workflow after checking that it may run over a context: policies, roles and credentials
 * may have changed since the workflow was written.
 *
 * @throws DomainError EXECUTOR_UNFIT, CREDENTIAL_MISSING; PolicyDenied
 */
export async function getStartableExecutor(
  tx: Snapshot,
  scope: Scope,
  policies: Policies,
  workflow: Workflow,
  context: WorkflowTriggerContext,
): Promise<Caller> {
  const { id, metadata } = workflow;
  if (!metadata?.executor) throw new Error(`the workflow ${id} has no executor`);
  const executor = await getExecutorAsCaller(tx, scope, metadata.executor);
  requireWorkflowAllowed(policies, workflow, context, executor.role);
  const host = searchOf(context)?.host;
  if (host !== undefined) {
    const use = { host, subject: executor.subject };
    if (!(await findRunnerWithHostToken(tx.db, scope, use, tx.now))) throw credentialMissing(host);
  }
  return executor;
}

/** Returns new ids, and the other values that every new execution of a workflow has. */
export function newExecutionIds(
  tx: WriteTransaction,
  workflow: Workflow,
): Pick<ExecutionTemplate, "id" | "session" | "workflowId" | "trace" | "now"> {
  const id = tx.newId();
  return { id, session: tx.newId(), workflowId: workflow.id, trace: newTrace(tx, id), now: tx.now };
}

/** Returns an execution that this transaction inserted, as responses have it, with the counts of its actions. */
export async function readInsertedExecution(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
): Promise<WorkflowExecution> {
  const stored = await findWholeExecution(tx.db, scope, id);
  if (!stored) throw new Error(`the execution ${id} is gone in the transaction that made it`);
  return stored.toResponse();
}

/** Returns the copied parts as a workflow, to check their size: inserted parameters may enlarge them. */
function copiedWorkflow({
  action,
  report,
  context,
}: Pick<RenderedTemplate, "action" | "report" | "context">): Workflow {
  const spec = { triggers: [{ context }], ...(action && { action }), ...(report && { report }) };
  return create(WorkflowSchema, { spec });
}

/**
 * Returns the subject that chose the workflow's repositories: the person that it runs as, since requireMayRunAs
 * allows nobody else to change it, or the creator of a workflow that runs as a service account.
 */
function contentAuthorsOf({ metadata }: Workflow): Subject[] {
  const { executor, creator } = metadata ?? {};
  const author = executor?.principal === Principal.SERVICE_ACCOUNT ? creator : executor;
  return author ? [author] : [];
}

function unusedParameterWarning(key: string) {
  return workflowError("parameter_unused", `nothing uses the parameter ${key}`, { parameter: key });
}
