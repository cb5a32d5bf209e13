import { CountResponseRelation } from "#gen/service/v1/count_pb.js";
import type { PagePosition, PageTokens } from "../domain/page.ts";

/** Cuts what was found to one page; a row too many means that another page follows. */
export function onePage<R extends { readonly position: PagePosition }>(
  tokens: PageTokens,
  query: string,
  found: readonly R[],
  size: number,
): { rows: readonly R[]; pagination: { nextToken: string } } {
  const rows = found.slice(0, size);
  const last = rows.at(-1);
  const nextToken = found.length > size && last ? tokens.issue(query, last.position) : "";
  return { rows, pagination: { nextToken } };
}

/** A count that was taken no further than one past the limit. */
export function answerCount(counted: number, limit: number) {
  return counted > limit
    ? { value: limit, relation: CountResponseRelation.GREATER_THAN_OR_EQUAL }
    : { value: counted, relation: CountResponseRelation.EQUAL };
}
