import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { DomainError } from "../../../domain/error.ts";
import { sourceKindsOf } from "../../../domain/source/source-trust.ts";
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
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { insertActions } from "../../../store/workflow/workflow-action.ts";
import {
  findWholeExecution,
  setExpanded,
  updateExecution,
} from "../../../store/workflow/workflow-execution.ts";
import { executorOf } from "../../identity/executor.ts";
import { requireTrustedSource } from "../../identity/source-trust.ts";
import { openHostToken } from "../../runner/host-token-secret.ts";
import { advanceExecution, endExecution } from "./execution-advance.ts";
import { findExecutorNamer } from "./executor-namer.ts";

/** The result of a search for repositories. */
export interface FoundRepositories {
  /** In the host's order, at most one more than the execution may have actions. */
  readonly cloneUrls: readonly string[];
  /** The host's total count; undefined when it gives none. */
  readonly totalCount: number | undefined;
  /** False when the host gave up before it had looked everywhere. */
  readonly isComplete: boolean;
}

/** Reasons for which an executor's credential cannot be used for a search, as executions report them. */
const SEARCH_REFUSALS: ReadonlyMap<ErrorReason, WorkflowReason> = new Map([
  [ErrorReason.EXECUTOR_UNFIT, "executor_unfit"],
  [ErrorReason.CREDENTIAL_WITHHELD, "credential_withheld"],
]);

const NOTHING_FOUND: FoundRepositories = { cloneUrls: [], totalCount: undefined, isComplete: true };

/**
 * Makes the actions of an execution from its context, as many as its limit
 * allows, and lets it go on.
 *
 * @param found for a context that is a search
 */
export async function expandExecution(
  tx: WriteTransaction,
  scope: Scope,
  before: WorkflowExecution,
  found: FoundRepositories = NOTHING_FOUND,
): Promise<void> {
  const trigger = before.spec?.trigger;
  if (!trigger) throw new Error(`the execution ${before.id} has no trigger`);
  const projectNames = await findProjectNames(tx, scope, before);
  const sources = actionSources(trigger, { projectNames, cloneUrls: found.cloneUrls });
  const most = before.spec?.action?.limits?.maxTotal ?? sources.length;
  const actions = sources
    .slice(0, most)
    .map(({ name, context }) =>
      newAction(before, { id: tx.newId(), session: tx.newId(), name, context, report: false }),
    );
  const leftOut = Math.max(sources.length, found.totalCount ?? 0) - actions.length;
  const warnings = [
    ...(leftOut > 0 && actions.length === most ? [leftOutWarning(leftOut, most)] : []),
    ...(found.isComplete ? [] : [incompleteWarning(before)]),
  ];
  if (warnings.length > 0) await updateExecution(tx, scope, before, warnedExecution(before, warnings));
  await insertActions(tx, scope, before.id, actions);
  await setExpanded(tx, scope, before.id);
  await advanceExecution(tx, scope, before.id);
}

/** A search that an execution waits for. The token must not be kept. */
export interface PendingSearch {
  readonly host: string;
  readonly query: string;
  /** Number of repositories to ask for: one more than the execution may have actions. */
  readonly limit: number;
  readonly token: string;
}

/**
 * The search that an execution waits for, with the executor's token for its
 * host; the audit log tells of the reading. An execution that cannot search any
 * more ends here.
 *
 * @returns undefined when there is nothing to search for
 */
export async function openSearch(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "open">,
  executionId: string,
): Promise<PendingSearch | undefined> {
  const execution = await findWaiting(tx, scope, executionId);
  const search = searchOf(execution?.spec?.trigger?.context);
  const executor = execution?.metadata?.executor;
  if (!execution || !search || !executor) return undefined;
  const { host } = search;
  const refusal = await searchRefusal(tx, scope, execution, executor, host);
  if (refusal) {
    await failExpansion(tx, scope, executionId, refusal);
    return undefined;
  }
  const runnerId = await findRunnerWithHostToken(tx.db, scope, { host, subject: executor }, tx.now);
  const opened = runnerId && (await openHostToken(tx, scope, keys, { runnerId, host, subject: executor }));
  if (!opened) {
    const message = `the executor has no credential for ${host}`;
    await failExpansion(tx, scope, executionId, workflowError("credential_missing", message, { host }));
    return undefined;
  }
  const limit = (execution.spec?.action?.limits?.maxTotal ?? 0) + 1;
  return { ...search, limit, token: opened.secrets.token };
}

/** Makes the actions of an execution that waited for a search; nothing when it does not wait any more. */
export async function expandFound(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
  found: FoundRepositories,
): Promise<void> {
  const execution = await findWaiting(tx, scope, executionId);
  if (execution) await expandExecution(tx, scope, execution, found);
}

/** Ends an execution whose actions cannot be made; nothing when it does not wait for them any more. */
export async function failExpansion(
  tx: WriteTransaction,
  scope: Scope,
  executionId: string,
  failure: WorkflowError,
): Promise<void> {
  const execution = await findWaiting(tx, scope, executionId);
  if (!execution) return;
  await setExpanded(tx, scope, executionId);
  await endExecution(tx, scope, execution, completedExecution(execution, [failure], tx.now));
}

async function findWaiting(tx: WriteTransaction, scope: Scope, executionId: string) {
  const stored = await findWholeExecution(tx.db, scope, executionId);
  return stored && !stored.expanded && !hasEnded(stored.execution) ? stored.execution : undefined;
}

/** Why the executor's credential cannot be used for the search; undefined when it can. */
async function searchRefusal(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  executor: Subject,
  host: string,
): Promise<WorkflowError | undefined> {
  try {
    await executorOf(tx, scope, executor);
    await requireTrustedSource(tx, scope, {
      host,
      executor,
      namedBy: await findExecutorNamer(tx, scope, execution),
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

async function findProjectNames(
  tx: WriteTransaction,
  scope: Scope,
  { spec }: WorkflowExecution,
): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  const context = spec?.trigger?.context?.context;
  if (context?.case !== "projects") return names;
  for (const id of context.value.projectIds) {
    const name = await findProjectName(tx.db, scope, id);
    if (name) names.set(id, name);
  }
  return names;
}

function leftOutWarning(count: number, most: number): WorkflowError {
  return workflowError("actions_left_out", `${count} were left out: at most ${most} actions are made`, {
    count: String(count),
  });
}

function incompleteWarning({ spec }: WorkflowExecution): WorkflowError {
  const host = searchOf(spec?.trigger?.context)?.host ?? "";
  return workflowError("search_incomplete", `${host} gave up before it had looked everywhere`, { host });
}
