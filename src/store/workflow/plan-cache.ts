import type { WorkflowPlan } from "../../domain/workflow/execution/workflow-plan.ts";

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
