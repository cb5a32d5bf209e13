import type { Kysely } from "kysely";
import type { Outcome } from "../domain/measures.ts";
import { type AuditSeal, insertRecords, type PendingRecord } from "./record/record.ts";
import type { Schema } from "./schema.ts";
import type { WriteBackRow } from "./write-back-row.ts";

/** The value of a write-back row, and whether it must be written. */
interface Held {
  readonly value: unknown;
  readonly isChanged: boolean;
}

/**
 * Collects what is written at the end of one commit: the records of its changes, and rows that several changes update.
 * The additions of a failed write are removed again; when the commit fails, everything is discarded.
 */
export class Group {
  readonly #db: Kysely<Schema>;
  readonly #records: PendingRecord[] = [];
  /** The outcomes that are counted after the commit. */
  readonly outcomes: Outcome[] = [];
  readonly #held = new Map<WriteBackRow<unknown, unknown>, Map<unknown, Held>>();
  /** Functions that undo each added record and value, in the order in which they were added. */
  readonly #undo: (() => void)[] = [];

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  record(record: PendingRecord): void {
    this.add(this.#records, record);
  }

  /** Adds to a list of other data that is written at the end of the commit. */
  add<T>(list: T[], entry: T): void {
    list.push(entry);
    this.#undo.push(() => list.pop());
  }

  async readWriteBack<K, V>(row: WriteBackRow<K, V>, key: K): Promise<V> {
    const held = this.#held.get(row)?.get(key);
    if (held) return held.value as V;
    const value = await row.read(this.#db, key);
    const since = this.#held.get(row)?.get(key);
    if (since) return since.value as V;
    this.#put(row, key, { value, isChanged: false });
    return value;
  }

  setWriteBack<K, V>(row: WriteBackRow<K, V>, key: K, value: V): void {
    this.#put(row, key, { value, isChanged: true });
  }

  #put<K, V>(row: WriteBackRow<K, V>, key: K, held: Held): void {
    const rows = this.#held.get(row) ?? new Map<unknown, Held>();
    this.#held.set(row, rows);
    const before = rows.get(key);
    this.#undo.push(() => (before ? rows.set(key, before) : rows.delete(key)));
    rows.set(key, held);
  }

  /** Returns a mark for {@link backTo}. Call it before a write, or a part of one, that may fail. */
  mark(): number {
    return this.#undo.length;
  }

  /** Removes everything that was added after the mark. */
  backTo(mark: number): void {
    for (const undo of this.#undo.splice(mark).reverse()) undo();
  }

  /** Writes the collected data. To be called in the open transaction, after its writes and before the commit. */
  async writeOut(seal: AuditSeal): Promise<void> {
    await insertRecords(this.#db, this, seal, this.#records);
    for (const [row, rows] of this.#held) {
      for (const [key, { value, isChanged }] of rows) if (isChanged) await row.write(this.#db, key, value);
    }
  }
}
