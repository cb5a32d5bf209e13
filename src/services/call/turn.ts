/**
 * How much one transaction may still do before others get their turn. It is
 * counted in rows, where a large row counts as several.
 */
export interface Turn {
  left: number;
}

/**
 * Rows that a write changes at most before it lets others go on. To stop an
 * action takes 0.7 ms on a machine at its limit, and so a turn about 15 ms.
 */
export const ROWS_PER_TURN = 20;

/** Starts a turn of {@link ROWS_PER_TURN}. */
export function newTurn(): Turn {
  return { left: ROWS_PER_TURN };
}

/** Takes rows that are about to be changed off a turn. */
export function spend(turn: Turn, rows: number): void {
  turn.left -= rows;
}

/** Tells whether a turn is used up. */
export function isOver({ left }: Turn): boolean {
  return left <= 0;
}
