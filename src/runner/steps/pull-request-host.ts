import { ScmFailure } from "../../scm/failure.ts";
import type { Proposal } from "../../scm/host-api.ts";
import type { OpenedPullRequest } from "../../scm/pull-request.ts";
import type { HostAccess, SourceControl } from "../../scm/source-control.ts";
import type { Checkout } from "../git/git-checkout.ts";
import { parseRemote } from "../git/remote-address.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { backOffMs, pause } from "../protocol/back-off.ts";
import { WorkFailure } from "../protocol/work-failure.ts";

/** A host that supports pull requests, and the token for it. */
export interface PullRequestHost {
  readonly host: string;
  readonly token: string;
}

/** Maximum number of attempts at a host that is busy or asks to wait. */
const MAX_TRIES = 4;
/** Maximum wait before a retry. A host that asks for a longer one is not tried again. */
const MAX_WAIT_MS = 60_000;

/**
 * Returns the host of a checkout's remote, or undefined if it does not support pull requests.
 *
 * @throws WorkFailure credential_missing, credential_withheld, or the reason why the host cannot be reached
 */
export async function findPullRequestHost(
  { tools, credentialFor }: Assignment,
  { remoteUri }: Checkout,
  signal: AbortSignal,
): Promise<PullRequestHost | undefined> {
  const { scheme, host } = parseRemote(remoteUri, tools.git.remotes);
  if (scheme === "file") return undefined;
  const kind = await withRetry(signal, () => tools.scm.hostKind(host, signal));
  if (kind === "plain") return undefined;
  const credential = await credentialFor(host);
  if (credential && "withheld" in credential) {
    throw new WorkFailure("credential_withheld", credential.withheld);
  }
  if (credential) return { host, token: credential.token };
  throw new WorkFailure(
    "credential_missing",
    `${host} opens pull requests only with a token: store a host authentication token of the executor for it and this runner`,
  );
}

/**
 * Opens a pull request, or returns the one that is already open for the branch.
 *
 * @throws WorkFailure
 */
export function openAtHost(
  scm: SourceControl,
  host: PullRequestHost,
  proposal: Proposal & { readonly remote: string },
  { signal, traceparent }: Pick<HostAccess, "traceparent"> & { readonly signal: AbortSignal },
): Promise<OpenedPullRequest> {
  return withRetry(signal, () => scm.openPullRequest({ ...host, ...proposal, signal, traceparent }));
}

/** Retries a request that the host may answer later. */
async function withRetry<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ScmFailure)) throw error;
      const waitMs = Math.max(error.retryAfterMs ?? 0, backOffMs(tries));
      if (!error.retriable || tries >= MAX_TRIES || waitMs > MAX_WAIT_MS) {
        throw new WorkFailure(`scm_${error.kind}`, error.message, error.retriable);
      }
      await pause(waitMs, signal);
      signal.throwIfAborted();
    }
  }
}
