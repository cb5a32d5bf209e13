import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../domain/identity/caller.ts";
import { requireExecutor } from "../../../domain/identity/executor.ts";
import { findSourceSetters } from "../../../store/identity/source-setter.ts";
import type { StoredWork } from "../../../store/runner/work.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { type FoundAction, findActions } from "../../../store/workflow/workflow-action.ts";
import { findWholeExecution, type StoredExecution } from "../../../store/workflow/workflow-execution.ts";
import { getExecutorAsCaller } from "../../identity/executor.ts";
import type { ActionOfExecution } from "./action-progress.ts";

/** The subjects whose rights and trust the environments of an execution's actions depend on. */
export interface ActionPeople {
  /** The creator of the environments. */
  readonly executor: Caller;
  /** The setters of the source that the execution's context names. */
  readonly contextSetters: readonly Subject[];
}

/** An execution whose actions are about to begin. */
interface ExecutionAhead {
  readonly stored: StoredExecution;
  readonly people: Promise<ActionPeople>;
}

/** An action that is about to begin, read together with the other actions of a claim. */
export class ActionAhead {
  readonly #action: Promise<FoundAction | undefined>;
  readonly #execution: Promise<ExecutionAhead | undefined>;
  /** Executions as changed by actions of this claim that have begun, by id. All actions of the claim share it. */
  readonly #begun: Map<string, WorkflowExecution>;

  constructor(
    action: Promise<FoundAction | undefined>,
    execution: Promise<ExecutionAhead | undefined>,
    begun: Map<string, WorkflowExecution>,
  ) {
    this.#action = action;
    this.#execution = execution;
    this.#begun = begun;
  }

  /** Returns the action and its execution; undefined when either was removed. */
  async found(): Promise<ActionOfExecution | undefined> {
    const [action, ahead] = await Promise.all([this.#action, this.#execution]);
    if (!action || !ahead) return undefined;
    const { execution, variables } = ahead.stored;
    return { action, execution: this.#begun.get(execution.id) ?? execution, variables };
  }

  /** Returns the subjects that its environment depends on. @throws DomainError as {@link findPeople} */
  async people(): Promise<ActionPeople | undefined> {
    return (await this.#execution)?.people;
  }

  /** Records that the action has begun, and its execution with it. */
  begin(execution: WorkflowExecution): void {
    this.#begun.set(execution.id, execution);
  }
}

/** Reads actions that are about to begin; reads each execution and its people once. */
export async function readActionsAhead(
  tx: WriteTransaction,
  scope: Scope,
  works: readonly StoredWork[],
): Promise<ActionAhead[]> {
  const begun = new Map<string, WorkflowExecution>();
  const executions = new Map<string, Promise<ExecutionAhead | undefined>>();
  const callers = new Map<string, Promise<Caller>>();
  const executionOf = (id: string) => {
    const known = executions.get(id) ?? readExecution(tx, scope, id, callers);
    executions.set(id, known);
    return known;
  };
  const actions = findActions(
    tx.db,
    scope,
    works.map(({ subject_id }) => subject_id),
  );
  const reads = works.map(({ subject_id, group_id }) => ({
    action: actions.then((found) => found.get(subject_id)?.()),
    // The work of an action is in the group of its execution.
    execution: executionOf(group_id),
  }));
  // A failed read fails only the actions that need it.
  await Promise.allSettled(
    reads.flatMap(({ action, execution }) => [action, execution.then((found) => found?.people)]),
  );
  return reads.map(({ action, execution }) => new ActionAhead(action, execution, begun));
}

async function readExecution(
  tx: WriteTransaction,
  scope: Scope,
  id: string,
  callers: Map<string, Promise<Caller>>,
): Promise<ExecutionAhead | undefined> {
  const stored = await findWholeExecution(tx.db, scope, id);
  if (!stored) return undefined;
  const people = findPeople(tx, scope, stored.execution, { callers, contextSetters: stored.sourceSetBy });
  return { stored, people };
}

/**
 * Returns the subjects that the environments of an execution's actions depend on.
 *
 * @param known what was read in this transaction: executors by their ids, and the setters of the context
 * @throws DomainError EXECUTOR_UNFIT when the executor may not act
 */
export async function findPeople(
  tx: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
  known: { readonly callers?: Map<string, Promise<Caller>> } & Partial<
    Pick<ActionPeople, "contextSetters">
  > = {},
): Promise<ActionPeople> {
  const subject = requireExecutor(execution.metadata?.executor);
  const caller = known.callers?.get(subject.id) ?? getExecutorAsCaller(tx, scope, subject);
  known.callers?.set(subject.id, caller);
  const [executor, contextSetters] = await Promise.all([
    caller,
    known.contextSetters ?? findSourceSetters(tx.db, scope, "workflow_execution", execution),
  ]);
  return { executor, contextSetters };
}
