import type Database from "better-sqlite3";
import { loopTurn } from "./loop-turn.ts";

/**
 * The state of the database that a connection reads. All reads of one turn of
 * the event loop share a transaction: one of its own for each statement costs
 * more than to find a row does. It ends with the turn, or before that when a
 * commit of this process is to be seen, so no read is older than its turn: a
 * request that came after a commit of any process sees it.
 */
export class Snapshot {
  readonly #reading: Database.Database;
  readonly #begin: Database.Statement;
  readonly #end: Database.Statement;
  #isOpen = false;
  /** The turn whose reads share it. */
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
      // One that an immediate or a timer began lasts past the next arrivals of requests, if nothing ends it here.
      this.renew();
    }
    this.#begin.run();
    this.#isOpen = true;
    this.#turn = turn;
    setImmediate(this.#endTurn);
  }

  /** The next read sees what is committed by then. */
  renew(): void {
    this.#isOpen = false;
    // An error of the disk may have ended it before.
    if (this.#reading.inTransaction) this.#end.run();
  }

  readonly #endTurn = () => {
    if (this.#reading.open) this.renew();
  };
}
