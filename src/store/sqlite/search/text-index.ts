import type { Kysely } from "kysely";
import type { Schema } from "../../schema.ts";
import type { Maintenance } from "../checkpoint/maintenance-thread.ts";
import { insertSearchText } from "./project-texts.ts";

/** A text of a project and its row in the index. */
export interface IndexedText {
  readonly row: number;
  readonly text: string;
}

/**
 * Number of commits with new texts, each of which adds a small segment to the index, after which
 * segments are merged: as many as migration 0006 allows on a level. With 16 the engine would merge
 * them on its own, within the change.
 */
const SEGMENTS_BEFORE_MERGE = 8;

/**
 * Number of segments at which the thread is started, which takes 100 ms: no write waits for that.
 */
const SEGMENTS_BEFORE_START = 4;

/**
 * Pages that are merged at once, in 2 to 20 ms: a merge ends only between two trigrams. As many
 * follow after each later change until nothing is left to merge.
 */
const PAGES_PER_MERGE = 16;

/**
 * Number of segments that may be added after a failed merge before the next attempt: a thread that
 * cannot start costs 100 ms.
 */
const RETRY_AFTER = 4;

/** Writes the index of texts; a thread merges it, a little after each few changes. */
export class TextIndex {
  readonly #maintenance: Maintenance;
  #segments = 0;

  constructor(maintenance: Maintenance) {
    this.#maintenance = maintenance;
  }

  /**
   * Writes texts to the index. To be called in the open transaction, outside of savepoints: the
   * index flushes itself at each.
   */
  async add(db: Kysely<Schema>, texts: readonly IndexedText[]): Promise<void> {
    if (texts.length === 0) return;
    // In the order of their rows: the engine begins another segment at each row that is lower than
    // the last.
    for (const { row, text } of texts.toSorted((one, other) => one.row - other.row)) {
      await insertSearchText(db, row, text);
    }
    this.#segments += 1;
  }

  /** Merges segments when enough have been added. To be awaited while no transaction is open. */
  async merge(): Promise<void> {
    if (this.#segments === SEGMENTS_BEFORE_START) void this.#maintenance.start();
    if (this.#segments < SEGMENTS_BEFORE_MERGE || this.#maintenance.isBusy) return;
    const result = await this.#maintenance.order({ mergePages: PAGES_PER_MERGE });
    if (!result) this.#segments = SEGMENTS_BEFORE_MERGE - RETRY_AFTER;
    else if (!result.hasMerged) this.#segments = 0;
  }
}
