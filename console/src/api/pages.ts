/** Rows on one page of a list. */
const PAGE = 50;

/** The first page of a list. */
export const FIRST_PAGE = { pagination: { pageSize: PAGE } } as const;

/** How to read the next page of the contract's lists. */
export const BY_PAGE = {
  pageParamKey: "pagination",
  getNextPageParam: ({ pagination }: { readonly pagination?: { readonly nextToken: string } }) =>
    pagination?.nextToken ? { pageSize: PAGE, token: pagination.nextToken } : undefined,
} as const;

/** Returns what a table needs to load more of a list. */
export function moreOf(list: {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}) {
  return {
    onMore: list.hasNextPage ? () => void list.fetchNextPage() : undefined,
    isLoadingMore: list.isFetchingNextPage,
  };
}
