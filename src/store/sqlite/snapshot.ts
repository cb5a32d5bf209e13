import type Database from "better-sqlite3";
import { loopTurn } from "./loop-turn.ts";

/**
 * The snapshot of the database that a connection reads. All reads of one turn of the event loop share a transaction:
 * one per statement costs more than finding a row. It ends with the turn, or earlier when a commit of this process
 * must be visible. No read is therefore older than its turn: a request that arrives after a commit of any process sees
 * it.
 */
export class Snapshot {
  readonly #reading: Database.Database;
  readonly #begin: Database.Statement;
  readonly #end: Database.Statement;
  #isOpen = false;
  /** The turn whose reads share the transaction. */
  #turn = 0;

  constructor(reading: Database.Database) {
    this.#reading = reading;
    this.#begin = reading.prepare("begin");
    this.#end = reading.prepare("commit");
  }

  /** To be called before each read. */
  share(): void {
    const turn = loopTurn();
    if (this.#isOpen) {
      if (turn === this.#turn) return;
      // Ends a transaction that an immediate or a timer began; it would otherwise outlast the next arrivals of
      // requests.
      this.renew();
    }
    this.#begin.run();
    this.#isOpen = true;
    this.#turn = turn;
    setImmediate(this.#endTurn);
  }

  /** Makes the next read see everything committed by then. */
  renew(): void {
    this.#isOpen = false;
    // An error of the disk may have ended it before.
    if (this.#reading.inTransaction) this.#end.run();
  }

  readonly #endTurn = () => {
    if (this.#reading.open) this.renew();
  };
}
