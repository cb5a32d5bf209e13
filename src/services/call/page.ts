import { CountResponseRelation } from "#gen/service/v1/count_pb.js";
import type { PaginationRequest } from "#gen/service/v1/pagination_pb.js";
import { type ListedRow, type PagePosition, pageSize, queryText, rowsOnPage } from "../../domain/page.ts";
import { SHORT_BYTES } from "../../store/listed-row.ts";
import type { Scope, Store } from "../../store/store.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { yieldToEventLoop } from "./yield-to-event-loop.ts";

/** Bytes of a page that are read in one turn of the event loop (or one larger row). This takes a few milliseconds. */
const TURN_BYTES = 262_144;

type Reader = Store["reader"];

/** A list operation: its request and how it reads. */
export interface ListQuery<T> {
  /** Name of the operation; page tokens are valid only for the same operation and parts. */
  readonly operation: string;
  /** The other parts of the request that determine the listed rows and their order, as JSON. */
  readonly parts?: readonly unknown[];
  readonly pagination: PaginationRequest | undefined;
  /** Folded text to search the rows for; empty for none. */
  readonly search?: string;
  /** Finds up to `limit` rows after `after`, in the order of the list. */
  find(db: Reader, after: PagePosition | undefined, limit: number): Promise<readonly ListedRow<T>[]>;
  /** Counts the rows, up to `limit`; undefined when the request does not ask for it. */
  readonly count?: ((db: Reader, limit: number) => Promise<number>) | undefined;
  /** Called before long texts are read. Its promise delays them. */
  readonly beforeLongTexts?: () => Promise<void> | undefined;
}

/**
 * Returns one page of a list, limited by rows and by bytes. The first page has the count. Every list operation uses
 * this function.
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
  // However selective the filter is, the main thread tests only a few rows. It tests none for a text search, which
  // has no index.
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

/** Returns a count that was taken up to one past the limit. */
function toCount(counted: number, limit: number) {
  return counted > limit
    ? { value: limit, relation: CountResponseRelation.GREATER_THAN_OR_EQUAL }
    : { value: counted, relation: CountResponseRelation.EQUAL };
}
