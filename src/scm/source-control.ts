import { isRepositoryPath, repositoryPath } from "../domain/source/repository-path.ts";
import { ScmFailure } from "./failure.ts";
import type { FollowedPullRequest } from "./followed-pull-request.ts";
import { createGiteaApi, giteaRoot } from "./gitea.ts";
import { createGitHubApi, GITHUB_HEADERS, gitHubRoot } from "./github.ts";
import { createGitLabApi, gitLabRoot } from "./gitlab.ts";
import type { HostApi, Proposal } from "./host-api.ts";
import { createHostClient } from "./host-client.ts";
import { detectHostKind, type HostKind, hostKindByName } from "./host-kind.ts";
import type { HostMemory } from "./host-memory.ts";
import { sendRequest } from "./host-request.ts";
import { type OpenedPullRequest, openPullRequestAt } from "./pull-request.ts";
import { SCM_LIMITS, type ScmLimits, type ScmSettings } from "./settings.ts";

/** A host and the credential for it. */
export interface HostAccess {
  /** The name or address, with a port when it is not the scheme's own; in any case of letters. */
  readonly host: string;
  /** The token, sent to this host's API and nowhere else. */
  readonly token: string;
  /** Aborts the call, which then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The trace context of the caller, as a `traceparent`, which is sent to the host's API. */
  readonly traceparent?: string | undefined;
}

/**
 * The operations on source-control hosts. Each request ends after 10 seconds and
 * accepts 5 MiB at most; each call throws ScmFailure.
 */
export interface SourceControl {
  /** Returns the API that a host speaks; throws `unavailable` when it cannot be asked now. */
  hostKind(host: string, signal?: AbortSignal): Promise<HostKind>;
  /**
   * Opens a pull request from one branch of a repository to another, or returns
   * the open one that the branch has already.
   *
   * @param request.remote the repository, as a remote of git in any form
   */
  openPullRequest(request: HostAccess & Proposal & { readonly remote: string }): Promise<OpenedPullRequest>;
  /**
   * Reads a pull request and its checks. What the host says is unchanged is not sent again.
   *
   * @param request.repository as in `owner/name`
   * @param request.memory what an earlier reading returned; `{}` for the first one
   */
  readPullRequest(
    request: HostAccess & {
      readonly repository: string;
      readonly number: number;
      readonly memory: HostMemory;
    },
  ): Promise<{ readonly pullRequest: FollowedPullRequest; readonly memory: HostMemory }>;
  /**
   * Searches the repositories that the token may see.
   *
   * @param request.query in the host's own language
   * @param request.limit from 1; GitHub shows 1,000 at most
   */
  searchRepositories(
    request: HostAccess & { readonly query: string; readonly limit: number },
  ): Promise<FoundRepositories>;
}

export function createSourceControl(settings: ScmSettings, limits: ScmLimits = SCM_LIMITS): SourceControl {
  const kinds = new Map<string, HostKind>();

  async function hostKind(host: string, signal?: AbortSignal, traceparent?: string): Promise<HostKind> {
    const known = hostKindByName(host) ?? kinds.get(host);
    if (known) return known;
    const get = (url: string) =>
      sendRequest(
        { host, method: "GET", url: new URL(url), headers: {}, signal, traceparent, mayBeRefused: true },
        settings,
        limits,
      );
    let kind: HostKind;
    try {
      kind = await detectHostKind(host, hostOrigin(host, settings), get);
    } catch (error) {
      // Nothing but ssh may run there; it is asked again next time, as it may also be starting.
      if (isConnectionRefused(error)) return "plain";
      throw error;
    }
    const [oldest] = kinds.keys();
    if (kinds.size >= limits.knownHosts && oldest !== undefined) kinds.delete(oldest);
    kinds.set(host, kind);
    return kind;
  }

  async function apiOf({ host, token, signal, traceparent }: HostAccess): Promise<HostApi> {
    const kind = await hostKind(host, signal, traceparent);
    const origin = hostOrigin(host, settings);
    const access = { host, token, signal, traceparent, settings, limits };
    if (kind === "gitlab")
      return createGitLabApi(createHostClient({ ...access, apiRoot: gitLabRoot(origin) }));
    if (kind === "github") {
      return createGitHubApi(
        createHostClient({ ...access, apiRoot: gitHubRoot(origin), headers: GITHUB_HEADERS }),
      );
    }
    if (kind === "gitea") {
      // The scheme that its documentation names.
      return createGiteaApi(createHostClient({ ...access, apiRoot: giteaRoot(origin), scheme: "token" }));
    }
    throw new ScmFailure("unsupported", host, "speaks none of the APIs of GitHub, GitLab, Gitea and Forgejo");
  }

  return {
    hostKind: (host, signal) => hostKind(host.toLowerCase(), signal),

    async openPullRequest({ remote, ...request }) {
      const host = request.host.toLowerCase();
      const api = await apiOf({ ...request, host });
      const repository = repositoryPath(remote);
      if (repository === undefined) {
        throw new ScmFailure(
          "not_found",
          host,
          "has no repository of this remote: it names no owner and name",
        );
      }
      return openPullRequestAt(api, repository, request);
    },

    async readPullRequest({ repository, number, memory, ...access }) {
      const host = access.host.toLowerCase();
      if (!isRepositoryPath(repository)) {
        throw new ScmFailure("not_found", host, "has no repository of this name");
      }
      const api = await apiOf({ ...access, host });
      return api.readPullRequest(repository, number, memory);
    },

    async searchRepositories({ query, limit, ...access }) {
      const host = access.host.toLowerCase();
      const api = await apiOf({ ...access, host });
      return searchRepositoriesAt(api, hostOrigin(host, settings), query, limit);
    },
  };
}

function isConnectionRefused(error: unknown): boolean {
  const cause = error instanceof ScmFailure ? (error.cause as NodeJS.ErrnoException | undefined) : undefined;
  return cause?.code === "ECONNREFUSED";
}

/**
 * Returns the root of a host's pages and repositories, such as
 * `https://git.example.org:8443`.
 *
 * @param host a name or an address, IPv6 in brackets, with a port or without one
 * @throws ScmFailure refused when it is anything else
 */
function hostOrigin(host: string, { plainHttpHosts }: ScmSettings): string {
  const scheme = plainHttpHosts.has(host) ? "http" : "https";
  // Characters that could end the host's part of a URL, or precede it.
  const url = /[\s/?#@\\%]/u.test(host) ? null : URL.parse(`${scheme}://${host}`);
  if (url === null) {
    throw new ScmFailure(
      "refused",
      JSON.stringify(host),
      "is no host: write its name, and its port after a colon",
    );
  }
  return url.origin;
}

/** The result of a search. */
interface FoundRepositories {
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
async function searchRepositoriesAt(
  api: HostApi,
  origin: string,
  query: string,
  limit: number,
): Promise<FoundRepositories> {
  // A page can repeat the end of the previous one when something moved in between.
  const found = new Set<string>();
  const lastPage = 2 * Math.ceil(limit / api.pageSize);
  let totalCount: number | undefined;
  let isComplete = true;
  for (let page = 1; page <= lastPage; page += 1) {
    const { repositories, hasNext, ...counted } = await api.searchRepositories(query, page);
    for (const each of repositories) found.add(`${origin}/${each}.git`);
    totalCount = counted.totalCount ?? totalCount;
    isComplete &&= counted.isComplete;
    if (!hasNext || found.size >= limit) break;
  }
  return { cloneUrls: [...found].slice(0, limit), totalCount, isComplete };
}
