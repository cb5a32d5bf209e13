import { repositoryIdentity } from "../../../domain/source/repository-identity.ts";
import { parseCheckEvent } from "../../../domain/workflow/trigger/check-event.ts";
import type { ParsedDelivery } from "../../../domain/workflow/trigger/parsed-delivery.ts";
import type { SignedDelivery } from "../../../domain/workflow/trigger/webhook-signature.ts";
import type { Scope, WriteTransaction } from "../../../store/store.ts";
import { hintPullRequests, type PullRequestHint } from "../../../store/workflow/pull-request/pull-request.ts";

/**
 * Schedules a reading of the pull requests that a delivery names. Their state comes from the host, not from the
 * delivery: a caller with the secret of one workflow could send any state for any repository.
 */
export async function hintOfDelivery(
  tx: WriteTransaction,
  scope: Scope,
  { headers, body }: SignedDelivery,
  parsed: ParsedDelivery,
): Promise<void> {
  if (parsed.kind === "pull_request") {
    const { pullRequest, repositoryUrls } = parsed.delivery;
    return hint(tx, scope, repositoryUrls, { number: Number(pullRequest.id) });
  }
  const checks = parsed.kind === "nothing" ? parseCheckEvent(headers, body) : undefined;
  if (checks) await hint(tx, scope, checks.repositoryUrls, { headSha: checks.headSha });
}

async function hint(
  tx: WriteTransaction,
  scope: Scope,
  repositoryUrls: readonly string[],
  about: PullRequestHint,
): Promise<void> {
  const identities = new Set(repositoryUrls.flatMap((url) => repositoryIdentity(url) ?? []));
  if (identities.size > 0) await hintPullRequests(tx, scope, [...identities], about);
}
