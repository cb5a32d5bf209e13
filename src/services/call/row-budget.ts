import type { WriteTransaction } from "../../store/store.ts";

/**
 * The number of rows that a transaction may still change before it must end and let other writes run. A large row
 * counts as several.
 */
export interface RowBudget {
  left: number;
}

/**
 * Maximum rows that such a transaction changes. Stopping an action takes 0.7 ms on a fully loaded machine, so a
 * transaction takes about 15 ms.
 */
export const ROWS_PER_TRANSACTION = 20;

/** Returns a budget of {@link ROWS_PER_TRANSACTION}. */
export function newRowBudget(): RowBudget {
  return { left: ROWS_PER_TRANSACTION };
}

const ofWrites = new WeakMap<WriteTransaction, RowBudget>();

/** Returns the budget of a write. All operations that share the write also share the budget. */
export function rowBudgetOf(tx: WriteTransaction): RowBudget {
  const budget = ofWrites.get(tx) ?? newRowBudget();
  ofWrites.set(tx, budget);
  return budget;
}

/** Subtracts rows that are about to be changed from a budget. */
export function spend(budget: RowBudget, rows: number): void {
  budget.left -= rows;
}

/** Returns whether a budget is used up. */
export function isExhausted({ left }: RowBudget): boolean {
  return left <= 0;
}
