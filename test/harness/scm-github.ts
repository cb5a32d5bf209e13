import type { ServerResponse } from "node:http";
import type { ReceivedRequest } from "./scm-host.ts";
import {
  type HostedPullRequest,
  type HostedRepository,
  hasBranch,
  headShaOf,
  pageOf,
  type ScmState,
  sendConditionally,
  sendJson,
} from "./scm-state.ts";

/** The header that GitHub sends with every response. */
const MARK = { "x-github-request-id": "0000:0000:000000:000000:00000000" };
/** GitHub shows at most this many results of a search. */
const MAX_RESULTS = 1_000;

/** Serves GitHub's REST API as a self-hosted server has it, below /api/v3. */
export async function handleGitHubRequest(
  state: ScmState,
  req: ReceivedRequest,
  res: ServerResponse,
): Promise<void> {
  const url = new URL(req.target, state.url);
  const send = (status: number, body: unknown, headers = {}) =>
    sendJson(res, status, body, { ...MARK, ...headers });
  if (!url.pathname.startsWith("/api/v3/")) return send(404, { message: "Not Found" });
  if (!state.isAuthorized(req.headers)) {
    return send(401, { message: req.headers.authorization ? "Bad credentials" : "Requires authentication" });
  }
  if (url.pathname === "/api/v3/meta") return send(200, { verifiable_password_authentication: true });
  if (url.pathname === "/api/v3/search/repositories") return search(state, url, send);

  const one = /^\/api\/v3\/repos\/([^/]+\/[^/]+)\/(pulls|commits)\/(\w+)(?:\/(check-runs|status))?$/.exec(
    url.pathname,
  );
  if (one) {
    const [, repositoryPath = "", , key = "", kind] = one;
    const found = state.repository(repositoryPath);
    const pullRequest = kind
      ? state.withHead(repositoryPath, key)
      : state.pullRequests.find((each) => each.repository === repositoryPath && each.number === Number(key));
    if (!found || !pullRequest) return send(404, { message: "Not Found" });
    const body = kind === undefined ? shown(pullRequest, found) : checksOf(pullRequest, kind);
    return sendConditionally(res, req.headers, body, MARK);
  }

  const path = /^\/api\/v3\/repos\/([^/]+\/[^/]+)\/pulls$/.exec(url.pathname)?.[1] ?? "";
  const moved = state.movedFrom(path);
  if (moved) {
    const location = `/api/v3/repositories/${moved.id}/pulls${url.search}`;
    return send(req.method === "GET" ? 301 : 307, { message: "Moved Permanently" }, { location });
  }
  const id = Number(/^\/api\/v3\/repositories\/(\d+)\/pulls$/.exec(url.pathname)?.[1]);
  const repository = state.repository(path) ?? state.repositories.find((each) => each.id === id);
  if (!repository) return send(404, { message: "Not Found" });
  if (req.method === "GET") return list(state, repository, url, send);
  if (req.method === "POST") return open(state, repository, req, send);
  return send(404, { message: "Not Found" });
}

type Send = (status: number, body: unknown, headers?: object) => void;

/** Returns the check runs, or the statuses taken together. */
function checksOf({ checks }: HostedPullRequest, kind: string) {
  const all = Object.entries(checks).filter(([name]) => name.startsWith("status/") === (kind === "status"));
  const states = all.map(([, state]) => state);
  if (kind === "status") {
    const combined = states.includes("failure")
      ? "failure"
      : states.length === 0 || states.includes("pending")
        ? "pending"
        : "success";
    return { state: combined, total_count: states.length };
  }
  const runs = all.map(([name, state]) => ({
    name,
    status: state === "pending" ? "in_progress" : "completed",
    conclusion: state === "pending" ? null : state,
  }));
  return { total_count: runs.length, check_runs: runs };
}

function search(state: ScmState, url: URL, send: Send): void {
  const words = (url.searchParams.get("q") ?? "").toLowerCase().split(" ");
  const owner = words.find((word) => word.startsWith("org:"))?.slice(4);
  const rest = words.filter((word) => word !== "" && !word.startsWith("org:"));
  const found = state.repositories.filter(
    ({ path }) =>
      (owner === undefined || path.toLowerCase().startsWith(`${owner}/`)) &&
      rest.every((word) => path.toLowerCase().includes(word)),
  );
  const { items, headers } = pageOf(found, url);
  if (Number(url.searchParams.get("page")) > MAX_RESULTS / 100) {
    send(422, { message: "Only the first 1000 search results are available" });
    return;
  }
  send(
    200,
    {
      total_count: found.length,
      incomplete_results: false,
      items: items.map(({ id, path, cloneUrl }) => ({ id, full_name: path, clone_url: cloneUrl })),
    },
    headers,
  );
}

function list(state: ScmState, repository: HostedRepository, url: URL, send: Send): void {
  const [owner, branch] = (url.searchParams.get("head") ?? "").split(":");
  // A head of another form is not a filter.
  const found = state.pullRequests.filter(
    (each) =>
      each.repository === repository.path &&
      (url.searchParams.get("state") === "all" || each.state === "open") &&
      (branch === undefined || (each.branch === branch && repository.path.startsWith(`${owner}/`))),
  );
  const { items, headers } = pageOf(found, url);
  send(
    200,
    items.map((each) => shown(each, repository)),
    headers,
  );
}

async function open(
  state: ScmState,
  repository: HostedRepository,
  req: ReceivedRequest,
  send: Send,
): Promise<void> {
  const { title, body, head, base, draft } = JSON.parse(req.body);
  const refuse = (error: object) =>
    send(422, { message: "Validation Failed", errors: [{ resource: "PullRequest", ...error }] });
  if (!(await hasBranch(repository, head))) return refuse({ field: "head", code: "invalid" });
  if (!(await hasBranch(repository, base))) return refuse({ field: "base", code: "invalid" });
  if (state.openOf(repository.path, head).some((each) => each.base === base && !each.isFromFork)) {
    const owner = repository.path.split("/")[0];
    return refuse({ code: "custom", message: `A pull request already exists for ${owner}:${head}.` });
  }
  const added = { repository: repository.path, title, description: body, branch: head, base, draft };
  send(201, shown(state.addPullRequest(added), repository));
}

function shown(pullRequest: HostedPullRequest, { id, path }: HostedRepository) {
  const { number, url, title, description, branch, base, draft, isFromFork, state } = pullRequest;
  return {
    number,
    html_url: url,
    state: state === "open" ? "open" : "closed",
    merged: state === "merged",
    merged_at: state === "merged" ? "2026-03-02T09:39:00Z" : null,
    title,
    body: description,
    draft,
    // The repository of a fork may be deleted; then it is null.
    head: { ref: branch, sha: headShaOf(pullRequest), repo: isFromFork ? null : { id, full_name: path } },
    base: { ref: base, repo: { id, full_name: path } },
  };
}
