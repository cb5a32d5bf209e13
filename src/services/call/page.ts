import { CountResponseRelation } from "#gen/service/v1/count_pb.js";
import { type ListedRow, rowsOnPage } from "../../domain/page.ts";
import type { Scope } from "../../store/store.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { ownTurn } from "./own-turn.ts";

/** What is read of a page in one turn of the event loop, or one row that is larger: a few milliseconds. */
const TURN_BYTES = 262_144;

/**
 * Cuts what was found to one page, by rows and by bytes, and reads it; a row
 * too many means that another page follows. Every list operation goes through
 * here.
 */
export async function onePage<T>(
  { pageTokens, pageBytes }: Pick<ServiceDependencies, "pageTokens" | "pageBytes">,
  query: string,
  found: readonly ListedRow<T>[],
  size: number,
): Promise<{ rows: T[]; pagination: { nextToken: string } }> {
  const fitting = found.slice(0, rowsOnPage(found, size, pageBytes));
  const last = fitting.at(-1);
  const nextToken = found.length > fitting.length && last ? pageTokens.issue(query, last.position) : "";
  const rows: T[] = [];
  let turnBytes = 0;
  for (const each of fitting) {
    turnBytes += each.bytes;
    if (turnBytes > TURN_BYTES) {
      await ownTurn();
      turnBytes = each.bytes;
    }
    const content = each.read();
    const row = content instanceof Promise ? await content : content;
    if (row !== undefined) rows.push(row);
  }
  return { rows, pagination: { nextToken } };
}

/**
 * Returns what the rows of a list are read with, and nothing else may be: however
 * rare what a filter lets through is, the main thread tests few rows of it. Where a
 * text is searched for, which no index finds, it tests none.
 */
export function readerFor({ store }: Pick<ServiceDependencies, "store">, scope: Scope, search = "") {
  return search === "" ? store.lister(scope) : store.searcher(scope);
}

/** A count that was taken no further than one past the limit. */
export function toCount(counted: number, limit: number) {
  return counted > limit
    ? { value: limit, relation: CountResponseRelation.GREATER_THAN_OR_EQUAL }
    : { value: counted, relation: CountResponseRelation.EQUAL };
}
