import { type HostApi, PAGE_SIZE } from "./host-api.ts";

/** The result of a search. */
export interface FoundRepositories {
  /** The URLs to clone from, in the host's order, each once. */
  readonly cloneUrls: readonly string[];
  /** The total that the host reports, which can be more than it shows; undefined when it reports none. */
  readonly totalCount: number | undefined;
  /** False when the host stopped before it had searched everywhere. */
  readonly isComplete: boolean;
}

/**
 * Searches a host's repositories, and returns the first `limit` of them.
 *
 * @param origin of the host; the URLs are made from it, so that they lead nowhere
 *   else
 * @throws ScmFailure
 */
export async function searchRepositoriesAt(
  api: HostApi,
  origin: string,
  query: string,
  limit: number,
): Promise<FoundRepositories> {
  // A page can repeat the end of the previous one when something moved in between.
  const found = new Set<string>();
  const lastPage = 2 * Math.ceil(limit / PAGE_SIZE);
  let totalCount: number | undefined;
  let isComplete = true;
  for (let page = 1; page <= lastPage; page += 1) {
    const { repositories, hasNext, ...told } = await api.searchRepositories(query, page);
    for (const each of repositories) found.add(`${origin}/${each}.git`);
    totalCount = told.totalCount ?? totalCount;
    isComplete &&= told.isComplete;
    if (!hasNext || found.size >= limit) break;
  }
  return { cloneUrls: [...found].slice(0, limit), totalCount, isComplete };
}
