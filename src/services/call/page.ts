import { CountResponseRelation } from "#gen/service/v1/count_pb.js";
import type { PaginationRequest } from "#gen/service/v1/pagination_pb.js";
import { type ListedRow, type PagePosition, pageSize, queryText, rowsOnPage } from "../../domain/page.ts";
import { SHORT_BYTES } from "../../store/listed-row.ts";
import type { Scope, Store } from "../../store/store.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { yieldToEventLoop } from "./yield-to-event-loop.ts";

/** Number of bytes of a page that are read in one turn of the event loop, or one larger row: a few milliseconds. */
const TURN_BYTES = 262_144;

type Reader = Store["reader"];

/** A list operation: what it is asked for, and what it reads. */
export interface ListQuery<T> {
  /** Name of the operation; page tokens are valid only for the same operation and parts. */
  readonly operation: string;
  /** The other parts of the request that determine the listed rows and their order, as JSON. */
  readonly parts?: readonly unknown[];
  readonly pagination: PaginationRequest | undefined;
  /** Folded text that the rows are searched for; empty for none. */
  readonly search?: string;
  /** Finds up to `limit` rows behind `after`, in the order of the list. */
  find(db: Reader, after: PagePosition | undefined, limit: number): Promise<readonly ListedRow<T>[]>;
  /** Counts the rows, up to `limit`; undefined where the request does not ask for it. */
  readonly count?: ((db: Reader, limit: number) => Promise<number>) | undefined;
  /** Called before long texts are read, which it may delay. */
  readonly beforeLongTexts?: () => Promise<void> | undefined;
}

/**
 * Returns one page of a list, cut by rows and by bytes, and on the first page the
 * count. Every list operation goes through here.
 *
 * @throws DomainError PAGE_TOKEN_INVALID
 */
export async function listPage<T>(
  deps: ListDependencies,
  caller: Scope,
  { operation, parts = [], pagination, search = "", find, count, beforeLongTexts }: ListQuery<T>,
) {
  const query = queryText(operation, caller.organizationId, ...parts);
  const after = deps.pageTokens.read(query, pagination?.token ?? "");
  const size = pageSize(pagination);
  // However rare what a filter lets through is, the main thread tests few rows of it. Where a
  // text is searched for, which no index finds, it tests none.
  const db = search === "" ? deps.store.lister(caller) : deps.store.searcher(caller);
  const page = await onePage(deps, query, await find(db, after, size + 1), size, beforeLongTexts);
  if (!count || after) return { rows: page.rows, page: { pagination: page.pagination } };
  const counted = toCount(await count(db, deps.countLimit + 1), deps.countLimit);
  return { rows: page.rows, page: { pagination: page.pagination, count: counted } };
}

/** The dependencies of lists. */
export type ListDependencies = Pick<ServiceDependencies, "store" | "pageTokens" | "pageBytes" | "countLimit">;

async function onePage<T>(
  { pageTokens, pageBytes }: Pick<ServiceDependencies, "pageTokens" | "pageBytes">,
  query: string,
  found: readonly ListedRow<T>[],
  size: number,
  beforeLongTexts: ListQuery<T>["beforeLongTexts"],
): Promise<{ rows: T[]; pagination: { nextToken: string } }> {
  const fitting = found.slice(0, rowsOnPage(found, size, pageBytes));
  const last = fitting.at(-1);
  const nextToken = found.length > fitting.length && last ? pageTokens.issue(query, last.position) : "";
  if (beforeLongTexts && fitting.some(({ bytes }) => bytes > SHORT_BYTES)) await beforeLongTexts();
  const rows: T[] = [];
  let turnBytes = 0;
  for (const each of fitting) {
    turnBytes += each.bytes;
    if (turnBytes > TURN_BYTES) {
      await yieldToEventLoop();
      turnBytes = each.bytes;
    }
    const content = each.read();
    const row = content instanceof Promise ? await content : content;
    if (row !== undefined) rows.push(row);
  }
  return { rows, pagination: { nextToken } };
}

/** Returns a count that was taken no further than one past the limit. */
function toCount(counted: number, limit: number) {
  return counted > limit
    ? { value: limit, relation: CountResponseRelation.GREATER_THAN_OR_EQUAL }
    : { value: counted, relation: CountResponseRelation.EQUAL };
}
