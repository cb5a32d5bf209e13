import { pullRequestNotKnown, pushRefused } from "./domain/environment/environment-push.ts";
import { ScmFailure } from "./scm/failure.ts";
import type { SourceControl } from "./scm/source-control.ts";
import type { PullRequestHosts } from "./services/access/push/push-pull-request.ts";

/** Returns the client of the hosts on which pull requests are opened; its failures are errors of the catalogue. */
export function createPullRequestHosts(
  scm: Pick<SourceControl, "hostKind" | "openPullRequest">,
): PullRequestHosts {
  return {
    opensPullRequests: (host, signal) =>
      asDomainError(pushRefused, async () => (await scm.hostKind(host, signal)) !== "plain"),
    open: (access, { body: description, ...request }) =>
      asDomainError(pullRequestNotKnown, () => scm.openPullRequest({ ...access, ...request, description })),
  };
}

async function asDomainError<T>(refused: typeof pushRefused, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ScmFailure) throw refused(`scm_${error.kind}`, error.message);
    throw error;
  }
}
