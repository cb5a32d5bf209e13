/** A branch that is to be merged, and what is said about it. */
export interface Proposal {
  readonly title: string;
  readonly description: string;
  /** The branch with the changes, in the same repository. */
  readonly branch: string;
  /** The branch that they go into. */
  readonly base: string;
  readonly draft: boolean;
}

/** An open pull request as its host knows it. */
export interface PullRequestAtHost {
  /** Its page. */
  readonly url: string;
  /** Counted per repository, as people cite it. */
  readonly number: number;
  /** The branch that it goes into. */
  readonly base: string;
}

/** One page of found repositories. */
export interface RepositoryPage {
  /** As in `owner/name`, in the host's order. */
  readonly repositories: readonly string[];
  readonly hasNext: boolean;
  /** How many the host counts in all; undefined when it does not say. */
  readonly totalCount: number | undefined;
  /** False when the host gave up before it had looked everywhere. */
  readonly isComplete: boolean;
}

/** Repositories a page; both hosts give no more. */
export const PAGE_SIZE = 100;

/** What is asked of a host, in the words of its API. All throw ScmFailure. */
export interface HostApi {
  /** @param repository as in `owner/name` */
  findPullRequests(repository: string, branch: string): Promise<PullRequestAtHost[]>;
  /** Fails with `validation` when there is one already. */
  createPullRequest(repository: string, proposal: Proposal): Promise<PullRequestAtHost>;
  /** @param page from 1 */
  searchRepositories(query: string, page: number): Promise<RepositoryPage>;
}

/** Whether an answer names a page after it (RFC 8288). */
export function hasNextLink(link: string | string[] | undefined): boolean {
  return /;\s*rel="?next"?/i.test(String(link ?? ""));
}
