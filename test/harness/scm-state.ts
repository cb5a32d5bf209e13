import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";

export interface HostedRepository {
  readonly id: number;
  path: string;
  readonly cloneUrl: string;
  readonly folder: string | undefined;
}

export interface HostedPullRequest {
  readonly repository: string;
  /** From 1, per repository. */
  readonly number: number;
  readonly url: string;
  readonly title: string;
  readonly description: string;
  readonly branch: string;
  readonly base: string;
  readonly draft: boolean;
  /** True when the branch belongs to a fork. */
  readonly isFromFork: boolean;
  readonly state: "open" | "closed" | "merged";
  /** The checks of its newest commit by name. */
  readonly checks: Readonly<Record<string, CheckState>>;
}

/** What one check says; GitHub shows those whose name begins with `status/` as statuses of the commit. */
export type CheckState = "pending" | "success" | "failure";

export type AddedPullRequest = Pick<HostedPullRequest, "repository" | "branch" | "base"> &
  Partial<Pick<HostedPullRequest, "title" | "description" | "draft" | "isFromFork">>;

/** Repositories and pull requests of a host, independent of the API that shows them. */
export class ScmState {
  readonly pullRequests: HostedPullRequest[] = [];
  readonly repositories: HostedRepository[] = [];
  readonly url: string;
  readonly #token: string;
  readonly #moved = new Map<string, HostedRepository>();

  constructor(url: string, token: string) {
    this.url = url;
    this.#token = token;
  }

  addRepository(path: string, folder?: string): HostedRepository {
    const id = this.repositories.length + 1;
    const repository = { id, path, cloneUrl: `${this.url}/${path}.git`, folder };
    this.repositories.push(repository);
    return repository;
  }

  renameRepository(from: string, to: string): void {
    const repository = this.repository(from);
    if (!repository) throw new Error(`there is no repository ${from}`);
    repository.path = to;
    this.#moved.set(from, repository);
  }

  repository(path: string): HostedRepository | undefined {
    return this.repositories.find((each) => each.path === path);
  }

  /** Returns the repository that once had this path. */
  movedFrom(path: string): HostedRepository | undefined {
    return this.#moved.get(path);
  }

  addPullRequest({ repository, ...fields }: AddedPullRequest, link = "pull"): HostedPullRequest {
    const number = this.pullRequests.filter((each) => each.repository === repository).length + 1;
    const pullRequest: HostedPullRequest = {
      title: "opened by somebody else",
      description: "",
      draft: false,
      isFromFork: false,
      checks: {},
      ...fields,
      repository,
      number,
      url: `${this.url}/${repository}/${link}/${number}`,
      state: "open",
    };
    this.pullRequests.push(pullRequest);
    return pullRequest;
  }

  changePullRequest(
    repository: string,
    number: number,
    change: Partial<Pick<HostedPullRequest, "state" | "checks" | "title">>,
  ): void {
    const at = this.pullRequests.findIndex(
      (each) => each.repository === repository && each.number === number,
    );
    const found = this.pullRequests[at];
    if (!found) throw new Error(`there is no pull request ${number} in ${repository}`);
    this.pullRequests[at] = { ...found, ...change };
  }

  /** Returns the open pull requests whose newest commit this is. */
  withHead(repository: string, sha: string): HostedPullRequest | undefined {
    return this.pullRequests.find((each) => each.repository === repository && headShaOf(each) === sha);
  }

  openOf(repository: string, branch: string): HostedPullRequest[] {
    return this.pullRequests.filter(
      (each) => each.repository === repository && each.branch === branch && each.state === "open",
    );
  }

  /** Returns whether a request has the token, in any of the headers. */
  isAuthorized(headers: IncomingHttpHeaders): boolean {
    const { authorization } = headers;
    return (
      authorization === `Bearer ${this.#token}` ||
      authorization === `token ${this.#token}` ||
      headers["private-token"] === this.#token
    );
  }
}

/** Returns the newest commit of a pull request: made up, as the branch may not exist. */
export function headShaOf({ repository, number, branch }: HostedPullRequest): string {
  return createHash("sha1").update(`${repository} ${number} ${branch}`).digest("hex");
}

/** Sends JSON with its ETag, or 304 where the client has that already. */
export function sendConditionally(
  res: ServerResponse,
  requestHeaders: IncomingHttpHeaders,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const etag = `W/"${createHash("sha256").update(JSON.stringify(body)).digest("hex").slice(0, 32)}"`;
  if (requestHeaders["if-none-match"] === etag) {
    res.writeHead(304, { etag, ...headers }).end();
    return;
  }
  sendJson(res, 200, body, { etag, ...headers });
}

/** Returns whether a branch exists in a repository; one without a folder has every branch. */
export function hasBranch({ folder }: HostedRepository, branch: string): Promise<boolean> {
  if (folder === undefined) return Promise.resolve(true);
  const args = ["--git-dir", folder, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`];
  return new Promise((resolve) => execFile("git", args, (error) => resolve(error === null)));
}

export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  res.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  res.end(JSON.stringify(body));
}

/** Returns one page of a list, and the link to the next page as hosts send it. */
export function pageOf<T>(
  all: readonly T[],
  url: URL,
  { sizeName = "per_page", maxSize = 100 } = {},
): { items: T[]; headers: Record<string, string> } {
  const size = Math.min(Number(url.searchParams.get(sizeName) ?? 30), maxSize);
  const page = Number(url.searchParams.get("page") ?? 1);
  const next = new URL(url);
  next.searchParams.set("page", String(page + 1));
  const hasNext = page * size < all.length;
  return {
    items: all.slice((page - 1) * size, page * size),
    headers: hasNext ? { link: `<${next}>; rel="next", <${url}>; rel="first"` } : {},
  };
}
