import type { FollowedPullRequest } from "./followed-pull-request.ts";
import type { HostMemory } from "./host-memory.ts";

/** A branch to be merged, and its description. */
export interface Proposal {
  readonly title: string;
  readonly description: string;
  /** The branch with the changes, in the same repository. */
  readonly branch: string;
  /** The branch that it is merged into. */
  readonly base: string;
  readonly draft: boolean;
}

/** An open pull request as its host returns it. */
export interface HostPullRequest {
  /** The URL of its page. */
  readonly url: string;
  /** The number within the repository, as people cite it. */
  readonly number: number;
  /** The branch that it is merged into. */
  readonly base: string;
}

/** One page of found repositories. */
export interface RepositoryPage {
  /** The paths as in `owner/name`, in the host's order. */
  readonly repositories: readonly string[];
  readonly hasNext: boolean;
  /** The total that the host reports; undefined when it reports none. */
  readonly totalCount: number | undefined;
  /** False when the host stopped before it had searched everywhere. */
  readonly isComplete: boolean;
}

/** Results per page at GitHub and GitLab, which return no more. */
export const PAGE_SIZE = 100;

/** The requests to a host, implemented for its API. All throw ScmFailure. */
export interface HostApi {
  /** Repositories per page of a search. */
  readonly pageSize: number;
  /**
   * Finds the open pull requests of a branch.
   * @param repository as in `owner/name`
   */
  findPullRequests(repository: string, branch: string): Promise<HostPullRequest[]>;
  /** Creates a pull request; fails with `validation` when one already exists. */
  createPullRequest(repository: string, proposal: Proposal): Promise<HostPullRequest>;
  /**
   * Reads a pull request and its checks.
   * @param memory what an earlier reading returned
   * @returns the memory of this reading
   */
  readPullRequest(
    repository: string,
    number: number,
    memory: HostMemory,
  ): Promise<{ readonly pullRequest: FollowedPullRequest; readonly memory: HostMemory }>;
  /**
   * Searches repositories.
   * @param page from 1
   */
  searchRepositories(query: string, page: number): Promise<RepositoryPage>;
}

/** Returns whether a response names a next page (RFC 8288). */
export function hasNextLink(link: string | string[] | undefined): boolean {
  return /;\s*rel="?next"?/i.test(String(link ?? ""));
}
