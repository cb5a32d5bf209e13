import { exchange, type HostAnswer, type HostRequest } from "./exchange.ts";
import { ScmFailure } from "./failure.ts";
import type { ScmLimits, ScmSettings } from "./settings.ts";

/** A renamed repository takes one; three allow for a host's own forwarding. */
const MOST_REDIRECTS = 3;

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Redirects that repeat the same request; the others turn it into a GET. */
const REPEATING: ReadonlySet<number> = new Set([307, 308]);

/**
 * Sends a request as exchange does, and follows redirects as long as they stay at
 * the scheme, host and port of the request: the request carries a token.
 *
 * @throws ScmFailure refused for a redirect elsewhere, unreadable for one too
 *   many
 */
export async function exchangeFollowing(
  req: HostRequest,
  settings: ScmSettings,
  limits: ScmLimits,
): Promise<HostAnswer> {
  let current = req;
  for (let redirects = 0; ; redirects += 1) {
    const answer = await exchange(current, settings, limits);
    const { location } = answer.headers;
    if (!REDIRECTS.has(answer.status) || location === undefined) return answer;
    const url = URL.parse(location, current.url);
    if (url?.origin !== req.url.origin) {
      throw new ScmFailure("refused", req.host, "redirects to another host, which gets no request from here");
    }
    if (redirects === MOST_REDIRECTS) {
      throw new ScmFailure("unreadable", req.host, `redirects more than ${MOST_REDIRECTS} times`);
    }
    if (req.method !== "GET" && !REPEATING.has(answer.status)) {
      throw new ScmFailure("not_found", req.host, "has moved it: use the address at which it is now");
    }
    current = { ...current, url };
  }
}
