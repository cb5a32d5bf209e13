import type { WorkflowPlan } from "../../domain/workflow/execution/workflow-plan.ts";

/** A plan with its size. */
export interface CachedPlan {
  readonly plan: WorkflowPlan;
  /** Characters of its stored text. */
  readonly characters: number;
}

/**
 * A cache of the most recently used plans, by the id of their execution, limited by the characters
 * of their texts.
 */
export class PlanCache {
  readonly #plans = new Map<string, CachedPlan>();
  readonly #mostCharacters: number;
  #characters = 0;

  constructor(mostCharacters: number) {
    this.#mostCharacters = mostCharacters;
  }

  get(executionId: string): CachedPlan | undefined {
    return this.#plans.get(executionId);
  }

  /** Adds a plan as the most recent one, and evicts the oldest ones beyond the limit. */
  put(executionId: string, plan: CachedPlan): void {
    this.#forget(executionId);
    this.#plans.set(executionId, plan);
    this.#characters += plan.characters + executionId.length;
    for (const oldest of this.#plans.keys()) {
      if (this.#characters <= this.#mostCharacters) break;
      this.#forget(oldest);
    }
  }

  #forget(executionId: string): void {
    const plan = this.#plans.get(executionId);
    if (!plan) return;
    this.#plans.delete(executionId);
    this.#characters -= plan.characters + executionId.length;
  }
}
