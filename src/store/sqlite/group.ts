import type { Kysely } from "kysely";
import type { HeldRow } from "../held-row.ts";
import type { Schema } from "../schema.ts";
import type { EnteredText, TextIndex } from "./text-index.ts";

/**
 * What the changes of one commit leave to be written at its end: texts for the
 * index, and rows that each of them moves on. It goes back with the savepoints,
 * and is lost with a commit that fails.
 */
export class Group {
  readonly #db: Kysely<Schema>;
  readonly #texts: EnteredText[] = [];
  readonly #held = new Map<HeldRow<unknown, unknown>, Map<unknown, unknown>>();
  /** How to take back all that was entered and held, in the order in which that was done. */
  readonly #undo: (() => void)[] = [];

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  enterText(row: number, text: string): void {
    this.#texts.push({ row, text });
    this.#undo.push(() => this.#texts.pop());
  }

  async read<K, V>(row: HeldRow<K, V>, key: K): Promise<V> {
    const values = this.#held.get(row);
    return values?.has(key) ? (values.get(key) as V) : row.read(this.#db, key);
  }

  set<K, V>(row: HeldRow<K, V>, key: K, value: V): void {
    const values = this.#held.get(row) ?? new Map<unknown, unknown>();
    this.#held.set(row, values);
    const before = values.get(key);
    this.#undo.push(values.has(key) ? () => values.set(key, before) : () => values.delete(key));
    values.set(key, value);
  }

  /** To be called when a savepoint is made; {@link backTo} takes what it gives. */
  mark(): number {
    return this.#undo.length;
  }

  /** Takes back what came after the mark; to be called when its savepoint is rolled back. */
  backTo(mark: number): void {
    for (const undo of this.#undo.splice(mark).reverse()) undo();
  }

  /** In the open transaction, outside of savepoints, before it is committed. */
  async writeOut(textIndex: TextIndex): Promise<void> {
    for (const [row, values] of this.#held) {
      for (const [key, value] of values) await row.write(this.#db, key, value);
    }
    await textIndex.enter(this.#db, this.#texts);
  }
}
