import type { Kysely } from "kysely";
import { insertSearchText } from "../project-search-index.ts";
import type { Schema } from "../schema.ts";
import type { Upkeep } from "./upkeep-thread.ts";

/** A text of a project and its row in the index. */
export interface EnteredText {
  readonly row: number;
  readonly text: string;
}

/**
 * Texts that are entered between two merges. Each group of them becomes a small
 * segment of the index, and segments have to be merged into larger ones; with 16
 * small ones the engine would do so on its own, within the change. Left to itself
 * altogether, it would merge some hundreds of pages at once every 64 pages.
 */
const TEXTS_BEFORE_MERGE = 12;

/** Pages that are merged for each text: measured, the number of segments stays at about ten with one less. */
const PAGES_PER_TEXT = 6;

/** At most so many at once, about 15 ms; what is left is made up for by later writes. */
const MOST_PAGES = 128;

/** Writes the index of texts; its upkeep is done in a thread, a little after each few texts. */
export class TextIndex {
  readonly #upkeep: Upkeep;
  #unmerged = 0;

  constructor(upkeep: Upkeep) {
    this.#upkeep = upkeep;
  }

  /** In the open transaction, outside of savepoints: the index writes itself out at each. */
  async enter(db: Kysely<Schema>, texts: readonly EnteredText[]): Promise<void> {
    for (const { row, text } of texts) await insertSearchText(db, row, text);
    this.#unmerged += texts.length;
  }

  /** To be awaited while no transaction is open. */
  async merge(): Promise<void> {
    if (this.#unmerged < TEXTS_BEFORE_MERGE || this.#upkeep.isBusy) return;
    const mergePages = Math.min(this.#unmerged * PAGES_PER_TEXT, MOST_PAGES);
    if (await this.#upkeep.order({ mergePages })) {
      this.#unmerged = Math.max(0, this.#unmerged - Math.ceil(mergePages / PAGES_PER_TEXT));
    }
  }
}
