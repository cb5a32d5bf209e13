import type Database from "better-sqlite3";
import type { Kysely } from "kysely";
import { insertSearchText } from "../project-search-index.ts";
import type { Schema } from "../schema.ts";

/** A text of a project and its row in the index. */
export interface EnteredText {
  readonly row: number;
  readonly text: string;
}

/**
 * Texts that are entered between two merges. Each group of them becomes a small
 * segment of the index, and segments have to be merged into larger ones. Left to
 * itself the engine does that every 64 pages, for some hundreds of pages at once:
 * with a million projects, 30 to 70 ms in which nothing else is answered.
 */
const TEXTS_BEFORE_MERGE = 4;

/** Pages that are merged for each text: measured, the number of segments stays at about ten with one less. */
const PAGES_PER_TEXT = 3;

/** At most so many at once, about 2 ms; what is left is made up for by later writes. */
const MOST_PAGES = 64;

/** Writes the index of texts, a little of its upkeep with each write. */
export class TextIndex {
  readonly #merge: Database.Statement<[number]>;
  #unmerged = 0;

  constructor(raw: Database.Database) {
    // The number has to reach the index as an integer; the driver binds reals.
    this.#merge = raw.prepare(
      "insert into project_search (project_search, rank) values ('merge', cast(? as integer))",
    );
  }

  /** In the open transaction, outside of savepoints: the index writes itself out at each. */
  async enter(db: Kysely<Schema>, texts: readonly EnteredText[]): Promise<void> {
    for (const { row, text } of texts) await insertSearchText(db, row, text);
    this.#unmerged += texts.length;
    if (texts.length === 0 || this.#unmerged < TEXTS_BEFORE_MERGE) return;
    const pages = Math.min(this.#unmerged * PAGES_PER_TEXT, MOST_PAGES);
    this.#unmerged = Math.max(0, this.#unmerged - Math.ceil(pages / PAGES_PER_TEXT));
    this.#merge.run(pages);
  }
}
