import { ScmFailure } from "./failure.ts";
import type { HostApi, Proposal } from "./host-api.ts";

/** An open pull request for a branch. */
export interface OpenedPullRequest {
  /** The URL of its page. */
  readonly url: string;
  /** The number within the repository, as people cite it. */
  readonly number: number;
  /** False when one already existed, which is left unchanged. */
  readonly created: boolean;
}

/**
 * Opens a pull request unless there is an open one for the branch: repeated and
 * concurrent calls return the same one.
 *
 * @throws ScmFailure
 */
export async function openPullRequestAt(
  api: HostApi,
  repository: string,
  proposal: Proposal,
): Promise<OpenedPullRequest> {
  const present = await openPullRequestOf(api, repository, proposal);
  if (present) return present;
  try {
    const { url, number } = await api.createPullRequest(repository, proposal);
    return { url, number, created: true };
  } catch (error) {
    if (!(error instanceof ScmFailure && error.kind === "validation")) throw error;
    // Another client may have created one in the meantime.
    const present = await openPullRequestOf(api, repository, proposal);
    if (present) return present;
    throw error;
  }
}

async function openPullRequestOf(
  api: HostApi,
  repository: string,
  { branch, base }: Proposal,
): Promise<OpenedPullRequest | undefined> {
  const open = await api.findPullRequests(repository, branch);
  const found = open.find((each) => each.base === base) ?? open[0];
  return found && { url: found.url, number: found.number, created: false };
}
