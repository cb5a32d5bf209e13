import { type WorkflowExecution, WorkflowExecution_SpecSchema } from "#gen/service/v1/workflow_pb.js";
import { planOf, type WorkflowPlan } from "../../domain/workflow/execution/workflow-plan.ts";
import { bytesOf, unindexed } from "../expressions.ts";
import { fromBody, toBody } from "../json.ts";
import { textOf } from "../long-text.ts";
import { prepared } from "../prepared.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { WorkflowPlanTable } from "./workflow-schema.ts";

/** A plan with its size. */
export interface CachedPlan {
  readonly plan: WorkflowPlan;
  /** Characters of its stored text. */
  readonly characters: number;
}

/**
 * A cache of the most recently used plans, by a key of their execution, limited by the characters
 * of their texts.
 */
export class PlanCache {
  readonly #plans = new Map<string, CachedPlan>();
  readonly #mostCharacters: number;
  #characters = 0;

  constructor(mostCharacters: number) {
    this.#mostCharacters = mostCharacters;
  }

  get(key: string): CachedPlan | undefined {
    return this.#plans.get(key);
  }

  /** Adds a plan as the most recent one, and evicts the oldest ones beyond the limit. */
  put(key: string, plan: CachedPlan): void {
    this.#forget(key);
    this.#plans.set(key, plan);
    this.#characters += plan.characters + key.length;
    for (const oldest of this.#plans.keys()) {
      if (this.#characters <= this.#mostCharacters) break;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    const plan = this.#plans.get(key);
    if (!plan) return;
    this.#plans.delete(key);
    this.#characters -= plan.characters + key.length;
  }
}

/** Characters of stored plans whose parsed forms are cached; one workflow has at most 4 Mi. */
const MAX_CACHED_CHARACTERS = 32 * 1024 * 1024;

/** A plan never changes and no id is used twice, so no entry can become stale. */
const planCache = new PlanCache(MAX_CACHED_CHARACTERS);

const insertRow = prepared<WorkflowPlanTable, unknown>((db, row) =>
  db.insertInto("workflow_plan").values({ execution_id: row.execution_id, body: row.body }),
);

/** Writes the plan of a new execution. */
export async function insertPlan(
  { db }: WriteTransaction,
  scope: Scope,
  execution: WorkflowExecution,
): Promise<void> {
  const plan = planOf(execution);
  const body = toBody(WorkflowExecution_SpecSchema, plan);
  await insertRow(db, { execution_id: execution.id, body });
  planCache.put(keyOf(scope, execution.id), { plan, characters: body.length });
}

const selectPlan = prepared<{ id: string; organizationId: string }, { body: Uint8Array | string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("workflow_execution")
      .innerJoin("workflow_plan", "workflow_plan.execution_id", "workflow_execution.id")
      .select(bytesOf("workflow_plan.body").as("body"))
      .where("workflow_execution.id", "=", id)
      .where(unindexed("workflow_execution.organization_id"), "=", organizationId),
);

/** Returns the plan of an execution. It is shared and must not be modified. */
export async function findPlan(db: Reader, scope: Scope, executionId: string): Promise<WorkflowPlan> {
  const key = keyOf(scope, executionId);
  const known = planCache.get(key);
  const found = known ?? (await readPlan(db, scope, executionId));
  planCache.put(key, found);
  return found.plan;
}

/** Parses a stored plan; an absent one is empty. */
export function planOfText(body: string | null | undefined): WorkflowPlan {
  return fromBody(WorkflowExecution_SpecSchema, body ?? "{}");
}

/** Returns the stored text of a plan; undefined without one. */
export async function findPlanText(
  db: Reader,
  { organizationId }: Scope,
  executionId: string,
): Promise<string | undefined> {
  const [row] = await selectPlan(db, { id: executionId, organizationId });
  return row && textOf(row.body);
}

/** Returns the key of a cached plan, which no other organization has. */
function keyOf({ organizationId }: Scope, executionId: string): string {
  return `${organizationId} ${executionId}`;
}

async function readPlan(db: Reader, scope: Scope, id: string): Promise<CachedPlan> {
  const body = await findPlanText(db, scope, id);
  return { plan: planOfText(body), characters: body?.length ?? 0 };
}
