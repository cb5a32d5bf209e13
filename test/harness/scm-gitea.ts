import type { ServerResponse } from "node:http";
import type { ReceivedRequest } from "./scm-host.ts";
import {
  type HostedPullRequest,
  type HostedRepository,
  hasBranch,
  headShaOf,
  pageOf,
  type ScmState,
  sendJson,
} from "./scm-state.ts";

/** The default of Gitea's MAX_RESPONSE_ITEMS, which no page exceeds. */
const PAGE = { sizeName: "limit", maxSize: 50 };

/** Serves the REST API of Gitea and Forgejo, below /api/v1. */
export async function handleGiteaRequest(
  state: ScmState,
  req: ReceivedRequest,
  res: ServerResponse,
): Promise<void> {
  const url = new URL(req.target, state.url);
  const send = (status: number, body: unknown, headers = {}) => sendJson(res, status, body, headers);
  if (!url.pathname.startsWith("/api/v1/")) {
    res.writeHead(404, { "content-type": "text/html" }).end("<h1>Not Found</h1>");
    return;
  }
  if (url.pathname === "/api/v1/settings/api") {
    return send(200, { max_response_items: 50, default_paging_num: 30, default_git_trees_per_page: 1_000 });
  }
  if (!state.isAuthorized(req.headers)) {
    return send(401, { message: "user does not exist [uid: 0, name: ]", url: `${state.url}/api/swagger` });
  }
  if (url.pathname === "/api/v1/repos/search") return search(state, url, send);

  const one = /^\/api\/v1\/repos\/([^/]+\/[^/]+)\/(?:pulls\/(\d+)|commits\/(\w+)\/status)$/.exec(
    url.pathname,
  );
  if (one) {
    const [, repositoryPath = "", number, sha] = one;
    const found = state.repository(repositoryPath);
    const pullRequest =
      sha === undefined
        ? state.pullRequests.find(
            (each) => each.repository === repositoryPath && each.number === Number(number),
          )
        : state.withHead(repositoryPath, sha);
    if (!found || !pullRequest) return send(404, notFound(state));
    // Gitea sends no ETag.
    return send(200, sha === undefined ? shown(pullRequest, found) : statusOf(pullRequest));
  }

  const path = /^\/api\/v1\/repos\/([^/]+\/[^/]+)\/pulls$/.exec(url.pathname)?.[1] ?? "";
  const moved = state.movedFrom(path);
  if (moved) {
    const location = `/api/v1/repos/${moved.path}/pulls${url.search}`;
    return send(req.method === "GET" ? 301 : 307, {}, { location });
  }
  const repository = state.repository(path);
  if (!repository) return send(404, notFound(state));
  if (req.method === "GET") return list(state, repository, url, send);
  if (req.method === "POST") return open(state, repository, req, send);
  return send(405, {});
}

type Send = (status: number, body: unknown, headers?: object) => void;

const notFound = ({ url }: ScmState) => ({
  errors: null,
  message: "The target couldn't be found.",
  url: `${url}/api/swagger`,
});

function statusOf({ checks }: HostedPullRequest) {
  const states = Object.values(checks);
  const worst = (["failure", "pending", "success"] as const).find((each) => states.includes(each));
  return { state: worst ?? "", total_count: states.length, statuses: [] };
}

function search(state: ScmState, url: URL, send: Send): void {
  const text = (url.searchParams.get("q") ?? "").toLowerCase();
  const [owner, ...rest] = text.split("/");
  const found = state.repositories.filter(({ path }) => {
    const [ofOwner = "", name = ""] = path.toLowerCase().split("/");
    // One slash also matches the owner and the name.
    return name.includes(text) || (rest.length === 1 && ofOwner === owner && name.includes(rest[0] ?? ""));
  });
  // Gitea's default order is alphabetical.
  if (url.searchParams.get("sort") !== "id") found.sort((a, b) => (a.path < b.path ? -1 : 1));
  const { items, headers } = pageOf(found, url, PAGE);
  const data = items.map(({ id, path, cloneUrl }) => ({ id, full_name: path, clone_url: cloneUrl }));
  send(200, { ok: true, data }, { ...headers, "x-total-count": String(found.length) });
}

function list(state: ScmState, repository: HostedRepository, url: URL, send: Send): void {
  // Gitea has no filter by the branch.
  const isOpen = url.searchParams.get("state") === "open";
  const found = state.pullRequests.filter(
    (each) => each.repository === repository.path && (!isOpen || each.state === "open"),
  );
  if (url.searchParams.get("sort") === "recentupdate") found.reverse();
  const { items, headers } = pageOf(found, url, PAGE);
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
  const { title, body: description, head: branch, base } = JSON.parse(req.body);
  if (!(await hasBranch(repository, branch)) || !(await hasBranch(repository, base))) {
    return send(404, notFound(state));
  }
  const present = state.openOf(repository.path, branch).find((each) => each.base === base);
  if (present && !present.isFromFork) {
    const message = `pull request already exists for these targets [id: 1, issue_id: ${present.number}, head_repo_id: ${repository.id}, base_repo_id: ${repository.id}, head_branch: ${branch}, base_branch: ${base}]`;
    return send(409, { message, url: `${state.url}/api/swagger` });
  }
  const draft = /^(?:wip:|\[wip\])/i.test(title);
  const added = { repository: repository.path, title, description, branch, base, draft };
  send(201, shown(state.addPullRequest(added, "pulls"), repository));
}

function shown(pullRequest: HostedPullRequest, { id, path }: HostedRepository) {
  const { number, url, title, description, branch, base, draft, isFromFork, state } = pullRequest;
  return {
    number,
    html_url: url,
    state: state === "open" ? "open" : "closed",
    merged: state === "merged",
    title,
    body: description,
    draft,
    head: {
      sha: headShaOf(pullRequest),
      label: branch,
      ref: branch,
      repo: isFromFork
        ? { id: 1_000_000 + id, full_name: `fork/${path.split("/")[1]}` }
        : { id, full_name: path },
    },
    base: { label: base, ref: base, repo: { id, full_name: path } },
  };
}
