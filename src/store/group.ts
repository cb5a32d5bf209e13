import type { Kysely } from "kysely";
import type { Outcome } from "../domain/measures.ts";
import { type AuditSeal, insertRecords, type PendingRecord } from "./record/record.ts";
import type { Schema } from "./schema.ts";
import type { WriteBackRow } from "./write-back-row.ts";

/** The value of a write-back row, and whether it is to be written. */
interface Held {
  readonly value: unknown;
  readonly isChanged: boolean;
}

/**
 * Collects what is written at the end of one commit: the records of its changes, and rows that
 * several changes update. What a write that fails has added is taken back, and all is lost with a commit that fails.
 */
export class Group {
  readonly #db: Kysely<Schema>;
  readonly #records: PendingRecord[] = [];
  /** The outcomes that are counted once the commit is made. */
  readonly outcomes: Outcome[] = [];
  readonly #held = new Map<WriteBackRow<unknown, unknown>, Map<unknown, Held>>();
  /** Functions that remove each record and value again, in the order in which they were added. */
  readonly #undo: (() => void)[] = [];

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  record(record: PendingRecord): void {
    this.add(this.#records, record);
  }

  /** Adds to a list of something else that the end of the commit writes. */
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

  /** To be called before a write, or a part of one, that may fail; {@link backTo} takes what it gives. */
  mark(): number {
    return this.#undo.length;
  }

  /** Takes back what came after the mark. */
  backTo(mark: number): void {
    for (const undo of this.#undo.splice(mark).reverse()) undo();
  }

  /** In the open transaction, after its writes, before it is committed. */
  async writeOut(seal: AuditSeal): Promise<void> {
    await insertRecords(this.#db, this, seal, this.#records);
    for (const [row, rows] of this.#held) {
      for (const [key, { value, isChanged }] of rows) if (isChanged) await row.write(this.#db, key, value);
    }
  }
}
