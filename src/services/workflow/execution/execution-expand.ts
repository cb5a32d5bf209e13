import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowExecution, WorkflowTriggerContext } from "#gen/service/v1/workflow_pb.js";
import { DomainError } from "../../../domain/error.ts";
import { sourceKindsOf } from "../../../domain/source/source-trust.ts";
import { traceparentOf } from "../../../domain/trace/trace-context.ts";
import { newAction } from "../../../domain/workflow/execution/workflow-action.ts";
import { type WorkflowReason, workflowError } from "../../../domain/workflow/execution/workflow-error.ts";
import {
  completedExecution,
  hasEnded,
  warnedExecution,
} from "../../../domain/workflow/execution/workflow-execution.ts";
import { actionSources, searchOf } from "../../../domain/workflow/execution/workflow-expansion.ts";
import type { Keys } from "../../../keys.ts";
import { findSourceSetters } from "../../../store/identity/source-setter.ts";
import { findProjectName } from "../../../store/project/project.ts";
import { findRunnerWithHostToken } from "../../../store/runner/host-token-choice.ts";
import type { Scope, Snapshot, WriteTransaction } from "../../../store/store.ts";
import { insertActions } from "../../../store/workflow/workflow-action.ts";
import {
  findWholeExecution,
  setExpanded,
  updateExecution,
} from "../../../store/workflow/workflow-execution.ts";
import { getExecutorAsCaller } from "../../identity/executor.ts";
import { requireTrustedSource } from "../../identity/source-trust.ts";
import { readHostCredential } from "../../runner/host-token-secret.ts";
import { advanceExecution, endExecution } from "./execution-advance.ts";
import { findExecutorAssigner } from "./executor-assigner.ts";

/** The result of a search for repositories. */
export interface FoundRepositories {
  /** In the host's order, at most one more than the execution may have actions. */
  readonly cloneUrls: readonly string[];
  /** The host's total count; undefined when it gives none. */
  readonly totalCount: number | undefined;
  /** False when the host stopped before it had searched everything. */
  readonly isComplete: boolean;
}

/** Why an executor's credential cannot be used for a search, as executions report it. */
const SEARCH_REFUSALS: ReadonlyMap<ErrorReason, WorkflowReason> = new Map([
  [ErrorReason.EXECUTOR_UNFIT, "executor_unfit"],
  [ErrorReason.CREDENTIAL_WITHHELD, "credential_withheld"],
]);

const NOTHING_FOUND: FoundRepositories = { cloneUrls: [], totalCount: undefined, isComplete: true };

/**
 * Creates the actions of an execution from its context, up to its limit, and advances
 * it.
 *
 * @param found the results of the search, for a context that is a search
 */
export async function expandExecution(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecution,
  found: FoundRepositories = NOTHING_FOUND,
): Promise<void> {
  const trigger = before.spec?.trigger;
  if (!trigger?.context) throw new Error(`the execution ${before.id} has no trigger`);
  const projectNames = await findProjectNames(tx, scope, trigger.context);
  const sources = actionSources(trigger, { projectNames, cloneUrls: found.cloneUrls });
  const maxActions = before.spec?.action?.limits?.maxTotal ?? sources.length;
  const actions = sources
    .slice(0, maxActions)
    .map(({ name, context }) =>
      newAction(before, { id: tx.newId(), session: tx.newId(), name, context, report: false }),
    );
  const leftOut = Math.max(sources.length, found.totalCount ?? 0) - actions.length;
  const warnings = [
    ...(leftOut > 0 && actions.length === maxActions ? [leftOutWarning(leftOut, maxActions)] : []),
    ...(found.isComplete ? [] : [incompleteWarning(before)]),
  ];
  if (warnings.length > 0) await updateExecution(tx, scope, before, warnedExecution(before, warnings));
  await insertActions(tx, scope, before.id, actions);
  await setExpanded(tx, scope, before.id);
  await advanceExecution(tx, scope, before.id);
}

/** A search that an execution waits for. The token must not be stored. */
export interface PendingSearch {
  readonly host: string;
  readonly query: string;
  /** Number of repositories to ask for: one more than the execution may have actions. */
  readonly limit: number;
  readonly token: string;
  /** The execution's span; undefined without a trace. */
  readonly traceparent?: string;
}

/**
 * Returns the search that an execution waits for, with the executor's token for the host. The audit log records that
 * the token was read. An execution that may no longer search fails.
 *
 * @returns undefined when there is nothing to search for
 */
export async function prepareSearch(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "open">,
  executionId: string,
): Promise<PendingSearch | undefined> {
  const execution = await findUnexpandedExecution(tx, scope, executionId);
  const search = searchOf(execution?.spec?.trigger?.context);
  const executor = execution?.metadata?.executor;
  if (!execution || !search || !executor) return undefined;
  const { host } = search;
  const refusal = await findSearchRefusal(tx, scope, execution, executor, host);
  if (refusal) {
    await failUnexpandedExecution(tx, scope, executionId, refusal);
    return undefined;
  }
  const runnerId = await findRunnerWithHostToken(tx.db, scope, { host, subject: executor }, tx.now);
  const credential =
    runnerId && (await readHostCredential(tx, scope, keys, { runnerId, host, subject: executor }));
  if (!credential) {
    const message = `the executor has no credential for ${host}`;
    await failUnexpandedExecution(
      tx,
      scope,
      executionId,
      workflowError("credential_missing", message, { host }),
    );
    return undefined;
  }
  const limit = (execution.spec?.action?.limits?.maxTotal ?? 0) + 1;
  const trace = traceparentOf(execution.metadata?.trace, executionId);
  return { ...search, limit, token: credential.secrets.token, ...trace };
}

/** Creates the actions of an execution from the results of its search, unless it no longer waits for them. */
export async function expandFromSearch(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
  found: FoundRepositories,
): Promise<void> {
  const execution = await findUnexpandedExecution(tx, scope, executionId);
  if (execution) await expandExecution(tx, scope, execution, found);
}

/** Fails an execution whose actions cannot be created, unless it no longer waits for them. */
export async function failUnexpandedExecution(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
  failure: WorkflowError,
): Promise<void> {
  const execution = await findUnexpandedExecution(tx, scope, executionId);
  if (!execution) return;
  await setExpanded(tx, scope, executionId);
  await endExecution(tx, scope, execution, completedExecution(execution, [failure], tx.now));
}

async function findUnexpandedExecution(tx: WriteTransaction, scope: Scope, executionId: string) {
  const stored = await findWholeExecution(tx.db, scope, executionId);
  return stored && !stored.expanded && !hasEnded(stored.execution) ? stored.execution : undefined;
}

/** Returns why the executor's credential cannot be used for the search; undefined when it can. */
async function findSearchRefusal(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  executor: Subject,
  host: string,
): Promise<WorkflowError | undefined> {
  try {
    await getExecutorAsCaller(tx, scope, executor);
    await requireTrustedSource(tx, scope, {
      host,
      executor,
      namedBy: await findExecutorAssigner(tx, scope, execution),
      setters: await findSourceSetters(tx.db, scope, "workflow_execution", execution),
      kinds: sourceKindsOf(execution, false),
    });
    return undefined;
  } catch (error) {
    const reason = error instanceof DomainError ? SEARCH_REFUSALS.get(error.reason) : undefined;
    if (!(error instanceof DomainError) || !reason) throw error;
    return workflowError(reason, error.message, error.metadata);
  }
}

/** Returns the names of the projects that a context names, by id. */
export async function findProjectNames(
  tx: Pick<Snapshot, "db">,
  scope: Scope,
  { context }: WorkflowTriggerContext,
): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  if (context.case !== "projects") return names;
  for (const id of context.value.projectIds) {
    const name = await findProjectName(tx.db, scope, id);
    if (name) names.set(id, name);
  }
  return names;
}

function leftOutWarning(count: number, maxActions: number): WorkflowError {
  return workflowError("actions_left_out", `${count} left out: at most ${maxActions} actions are made`, {
    count: String(count),
  });
}

function incompleteWarning({ spec }: WorkflowExecution): WorkflowError {
  const host = searchOf(spec?.trigger?.context)?.host ?? "";
  return workflowError("search_incomplete", `${host} gave up before it had looked everywhere`, { host });
}
